"""Which agent is at work, and whose session it is."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal.ground import agent
from amux.journal.ground.agent import Agent, Profile

CLAUDE = Profile(agent="claude-code")
NONE = Profile()


def write(
    facts: Mapping[str, str], client: str = "", argument: str | None = None, hint: Profile = NONE
) -> Agent:
    return agent.for_write(agent.host(facts, client), argument, hint)


def read(
    facts: Mapping[str, str],
    client: str = "",
    argument: str | None = None,
    hint: Profile = NONE,
    directories: tuple[str, ...] = (),
) -> Agent:
    return agent.for_read(agent.host(facts, client), argument, hint, directories)


# --- J28 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J28")
def test_the_ids_are_closed_and_compared_trimmed_in_small_ascii() -> None:
    assert set(agent.AGENTS) == {
        "copilot", "vscode-copilot", "claude-code", "codex", "cursor", "jetbrains-copilot", "grok",
        "unknown-agent", "pi", "gemini-cli", "opencode",
    }  # fmt: skip
    assert agent.legal("  Claude-CODE\n") == "claude-code"
    for word in ("claude", "", "codex2", "CODE\u212a", None, 7, ["codex"]):
        assert agent.legal(word) is None


# --- J29 -----------------------------------------------------------------------------------------


CLIENTS = {
    "codex-mcp-client": "codex",
    "Codex": "codex",
    "claude-code": "claude-code",
    "Claude-Code": "claude-code",
    "claude-code-2": "",
    "claude-ai": "",
    "opencode": "opencode",
    "pi": "pi",
    "pi-mcp": "pi",
    "pixel": "",
    "cursor-vscode": "cursor",
    "gemini-cli-mcp-client": "gemini-cli",
    "grok-build": "grok",
    "Visual Studio Code": "vscode-copilot",
    "Visual Studio Code - Insiders": "vscode-copilot",
    "vscode": "vscode-copilot",
    "JetBrains-IU/copilot": "jetbrains-copilot",
    "my IntelliJ plugin": "jetbrains-copilot",
    "": "",
    "somebody": "",
}


@pytest.mark.requirement("J29")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_name_names_the_agent(client: str) -> None:
    found = agent.host({}, client)
    assert found.agent == CLIENTS[client]
    assert found.source == ("client" if found.agent else "unknown")


STRONG = {
    "CLAUDE_CODE_SESSION_ID": "claude-code", "CLAUDE_CODE_VERSION": "claude-code",
    "CLAUDE_HOOK_COMMAND": "claude-code", "PI_SESSION_ID": "pi", "PI_CODING_AGENT_DIR": "pi",
    "GEMINI_CLI": "gemini-cli", "GROK_AGENT": "grok", "GROK_SESSION": "grok",
    "GROK_SESSION_ID": "grok", "GROK_BUILD": "grok", "XAI_GROK": "grok", "XAI_AGENT": "grok",
    "CODEX_SANDBOX": "codex", "OPENAI_CODEX": "codex", "CODEX_ENV_PWD": "codex",
}  # fmt: skip
WEAK = {
    "CURSOR_TRACE_ID": "cursor", "CURSOR_USER_ID": "cursor", "CODEX_HOME": "codex",
    "GROK_HOME": "grok", "IDEA_INITIAL_DIRECTORY": "jetbrains-copilot",
    "JETBRAINS_IDE": "jetbrains-copilot", "VSCODE_PID": "vscode-copilot",
}  # fmt: skip


@pytest.mark.requirement("J29")
@pytest.mark.parametrize(("variable", "name"), [*STRONG.items(), *WEAK.items()])
def test_a_variable_names_the_agent_unless_it_is_empty(variable: str, name: str) -> None:
    found = agent.host({variable: "1"})
    assert (found.agent, found.is_strong) == (name, variable in STRONG)
    assert found.source == ("environment" if found.is_strong else "terminal")
    assert agent.host({variable: ""}).agent == ""
    assert variable in agent.VARIABLES


@pytest.mark.requirement("J29")
def test_two_variables_count_by_their_value() -> None:
    assert agent.host({"AI_AGENT": "pi"}).agent == "pi"
    assert agent.host({"AI_AGENT": "other"}).agent == ""
    assert agent.host({"TERM_PROGRAM": "vscode"}).agent == "vscode-copilot"
    assert agent.host({"TERM_PROGRAM": "tmux"}).agent == ""


@pytest.mark.requirement("J29")
def test_the_client_goes_before_the_override_and_that_before_all_else() -> None:
    everything = dict.fromkeys([*STRONG, *WEAK], "1") | {"AMUX_AGENT": "opencode"}
    assert agent.host(everything, "pi").agent == "pi"
    assert agent.host(everything).agent == "opencode"
    assert agent.host(everything | {"AMUX_AGENT": "", "DEVCODEX_AGENT": "Cursor "}).agent == (
        "cursor"
    )
    assert agent.host(dict.fromkeys([*STRONG, *WEAK], "1")).agent == "claude-code"


@pytest.mark.requirement("J29")
def test_an_illegal_override_is_skipped_and_said() -> None:
    found = agent.host({"AMUX_AGENT": "claude", "DEVCODEX_AGENT": "grok"})
    assert (found.agent, found.warnings) == ("grok", ("agent-override-illegal",))
    found = agent.host({"AMUX_AGENT": "claude", "CODEX_SANDBOX": "1"})
    assert (found.agent, found.warnings) == ("codex", ("agent-override-illegal",))


@pytest.mark.requirement("J29")
def test_two_hosts_in_one_environment_are_said_and_the_first_row_stands() -> None:
    found = agent.host({"CODEX_SANDBOX": "1", "PI_SESSION_ID": "1"})
    assert (found.agent, found.warnings) == ("pi", ("several-hosts",))
    assert agent.host({"GROK_AGENT": "1", "GROK_SESSION": "1"}).warnings == ()


@pytest.mark.requirement("J29")
@pytest.mark.parametrize(
    "facts", [{"AMUX_AGENT": "grok"}, {"DEVCODEX_AGENT": " GROK"}, {"GROK_AGENT": "1"}]
)
def test_codex_in_the_hands_of_grok_is_grok(facts: dict[str, str]) -> None:
    assert agent.host(facts, "codex-x").agent == "grok"


# --- J30 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J30", "JA3")
def test_a_profile_is_a_fallback_only_and_a_conflict_is_said() -> None:
    found = write({}, "codex-mcp-client", hint=CLAUDE)
    assert (found.id, found.source, found.is_conflict) == ("codex", "client", True)
    found = write({}, hint=Profile(agent="cursor"))
    assert (found.id, found.source, found.is_conflict) == ("cursor", "profile-fallback", False)
    assert write({"VSCODE_PID": "7"}, hint=CLAUDE).id == "vscode-copilot"


@pytest.mark.requirement("J30", "JA3")
@pytest.mark.parametrize(
    "data", [b'{"agent":"claude"}', b"claude-code", b"\xff", b'{"agent":7}', b"[]", b"[" * 9999]
)
def test_a_profile_that_names_no_agent_counts_as_absent(data: bytes) -> None:
    hint = agent.profile(data)
    found = write({}, hint=hint)
    assert (found.id, found.source) == ("unknown-agent", "unknown")
    assert found.warnings == ("profile-agent-illegal",)
    assert "profile" in found.reason


@pytest.mark.requirement("J30")
def test_a_profile_without_an_agent_says_nothing() -> None:
    assert agent.profile(None) == agent.profile(b'{"editor":"vi"}') == Profile()
    assert agent.profile(b'{"agent":" Codex ","x":1}') == Profile(agent="codex")


@pytest.mark.requirement("J30", "JA4")
def test_bare_claude_is_nobody() -> None:
    found = write({"DEVCODEX_AGENT": "claude"})
    assert (found.id, found.warnings) == ("unknown-agent", ("agent-override-illegal",))
    assert found.reason
    assert write({"GROK_AGENT": "1"}, "codex-x").id == "grok"


@pytest.mark.requirement("J30", "JA5")
def test_an_argument_goes_before_a_terminal_and_never_against_a_strong_fact() -> None:
    with pytest.raises(AmuxError) as refused:
        write({}, "codex-mcp-client", "claude-code")
    assert refused.value.code == "invalid_argument"
    assert refused.value.details["reason"] == "MEMORY_AGENT_CONFLICT"
    found = write({"TERM_PROGRAM": "vscode"}, "", "claude-code")
    assert (found.id, found.source) == ("claude-code", "argument")
    assert write({}, "Visual Studio Code", "copilot").id == "vscode-copilot"
    assert write({"AMUX_AGENT": "copilot"}, "", "vscode-copilot").id == "copilot"
    assert not write({"AMUX_AGENT": "copilot"}, hint=Profile(agent="vscode-copilot")).is_conflict


# --- J31, J32 ------------------------------------------------------------------------------------


@pytest.mark.requirement("J31")
def test_a_read_takes_the_argument_first_and_directories_last() -> None:
    assert read({}, "codex-mcp-client", "claude-code").id == "claude-code"
    assert read({}, "codex-mcp-client", directories=("pi",)).id == "codex"
    found = read({}, directories=("pi", "notes"))
    assert (found.id, found.source) == ("pi", "directory")
    assert found.warnings == ("agent-inferred-from-directory",)
    assert read({}, directories=()).source == "unknown"
    with pytest.raises(AmuxError) as refused:
        read({}, directories=("pi", "codex"))
    assert refused.value.code == "ambiguous"
    assert refused.value.details["agents"] == ["codex", "pi"]


@pytest.mark.requirement("J30", "J31")
def test_directories_never_decide_a_write() -> None:
    assert write({}).id == "unknown-agent"


@pytest.mark.requirement("J32")
def test_a_result_tells_the_agent_and_where_that_came_from() -> None:
    assert write({}, "pi", hint=CLAUDE).plain() == {
        "id": "pi", "source": "client", "profileAgent": "claude-code", "conflict": True,
        "reason": None,
    }  # fmt: skip
    nobody = write({}).plain()
    assert nobody["id"] == "unknown-agent"
    assert nobody["reason"]
    sources = {
        write({"AMUX_AGENT": "pi"}).source,
        write({}, "pi").source,
        write({}, "", "pi").source,
        write({"VSCODE_PID": "1"}).source,
        write({}, hint=CLAUDE).source,
        read({}, directories=("pi",)).source,
        write({}).source,
    }
    assert sources == {
        "environment", "client", "argument", "terminal", "profile-fallback", "directory",
        "unknown",
    }  # fmt: skip


FACTS = st.dictionaries(
    st.sampled_from(sorted(agent.VARIABLES)),
    st.sampled_from(["", "1", "pi", "vscode", "claude", "claude-code", "GROK"]),
)


@pytest.mark.requirement("J28", "J30")
@given(FACTS, st.sampled_from([*CLIENTS]), st.sampled_from(agent.AGENTS), st.binary(max_size=30))
def test_whatever_the_facts_an_agent_is_one_of_the_ids(
    facts: dict[str, str], client: str, argument: str, profile: bytes
) -> None:
    hint = agent.profile(profile)
    assert write(facts, client, hint=hint).id in agent.AGENTS
    assert read(facts, client, argument, hint).id == argument
    # Without any fact or hint nobody is guessed.
    if not any(facts.values()) and not CLIENTS[client] and not hint.agent:
        assert write(facts, client).id == "unknown-agent"


# --- J27 -----------------------------------------------------------------------------------------


def key(
    facts: Mapping[str, str], client: str = "", *, given: str = "", is_mcp: bool = True
) -> agent.SessionKey:
    return agent.session_key(
        facts, agent.host(facts, client), given=given, fallback="random", is_mcp=is_mcp
    )


@pytest.mark.requirement("J27")
def test_a_session_is_named_by_the_first_that_names_it() -> None:
    facts = {"AMUX_SESSION": "a", "CLAUDE_CODE_SESSION_ID": "c"}
    assert key(facts, given="flag").key == "flag"
    assert (key(facts).key, key(facts).source) == ("a", "AMUX_SESSION")
    assert key({**facts, "AMUX_SESSION": ""}).key == "c"
    assert key({"PI_SESSION_ID": "p"}).key == "p"
    assert key({"GROK_SESSION_ID": "g"}).key == "g"
    # Another agent's variable is not this one's session.
    assert key({"CLAUDE_CODE_SESSION_ID": "c"}, "codex").key == "random"


@pytest.mark.requirement("J27")
def test_a_command_line_without_a_key_of_its_own_owns_nothing() -> None:
    assert not key({}, is_mcp=False).is_own
    assert key({}, is_mcp=True).is_own
    assert key({}, given="k", is_mcp=False).is_own
    assert key({"AMUX_SESSION": "s"}, is_mcp=False).is_own


@pytest.mark.requirement("J27", "JA4")
def test_an_agent_inside_another_does_not_take_its_session() -> None:
    facts = {"AMUX_AGENT": "claude-code", "AMUX_SESSION": "s"}
    found = key(facts, "pi")
    assert found.key != "s"
    assert found.warnings == ("inherited-session",)
    assert agent.host(facts, "pi").agent == "pi"
    assert key({**facts, "PI_SESSION_ID": "p"}, "pi").key == "p"
    assert key({**facts, "AMUX_AGENT": "pi"}, "pi").key == "s"
    assert key({**facts, "AMUX_AGENT": "copilot"}, "vscode").key == "s"
    assert key({"AMUX_AGENT": "grok", "AMUX_SESSION": "s"}, "codex").key == "s"
