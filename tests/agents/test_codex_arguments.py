"""What a caller may pass on to Codex, and how what amux passes is spelled: no agent is started."""

import tomllib

import pytest

from amux.errors import InvalidArgument, LaunchRefused
from amux.runtime.agents import codex
from amux.runtime.effective import OFF, Effective, Entry
from amux.runtime.plan import Bound, LaunchPlan, Start

PLAN = LaunchPlan(argv=("codex",), environment={"HOME": "/h"}, cwd="/a.b/ü")
BOUND = Bound(
    session="s-1",
    agent_id="codex",
    binding="amux1:hub:global",
    hub="/run/hub.sock",
    credential_file='/x/it\'s "here"\\\x7f',
    text="PROTOCOL\n",
    form="mcp",
    asks_writes=False,
    command=("/opt/amux",),
    tools=("memory_get", "memory_upsert"),
)
START = Start(native=(), directory="/x", version="0.171.0")
TERMINAL = Effective(has_daemon=True)


def composed(*native: str, prompt: str | None = None, known: Effective = TERMINAL) -> LaunchPlan:
    return codex.compose(PLAN, BOUND, START.replace(native=native, prompt=prompt), known)


def settings(plan: LaunchPlan) -> dict[str, object]:
    """Read the `-c` flags as Codex does: the last one of a name wins."""
    found: dict[str, object] = {}
    for flag, word in zip(plan.argv, plan.argv[1:], strict=False):
        if flag == "-c":
            key, _, value = word.partition("=")
            found[key] = tomllib.loads(f"v = {value}")["v"]
    return found


@pytest.mark.requirement("R21", "run-16", "run-22")
@pytest.mark.parametrize(
    "words",
    [
        "--enable memories",
        "--disable memories",
        "--enable=memory_tool",
        "-c features.memories=true",
        "-cfeatures.memories=true",
        "--config=memories.use_memories=true",
        '-c memories={"use_memories"=true}',
        "-c features={memories=true}",
        '-c features."memories"=true',
        "-c mcp_servers.amux.enabled=false",
        "-c mcp_servers={amux={enabled=false}}",
        "exec",
        "resume",
        "fork",
        "app-server",
        "-m model exec",
        "--profile work",
        "-p work",
        "--remote ws://127.0.0.1:1",
        "-C /elsewhere",
        "--cd=/elsewhere",
    ],
)
@pytest.mark.parametrize("prompt", [None, "hello"])
def test_what_would_undo_the_launch_is_refused_by_name(words: str, prompt: str | None) -> None:
    with pytest.raises(InvalidArgument) as caught:
        composed(*words.split(" "), prompt=prompt)
    argument = str(caught.value.details["argument"])
    assert argument.split(" ")[0].split("=")[0] in words
    assert caught.value.hint


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("words", ["exec", "resume --last", "fork", "app-server"])
def test_commands_of_codex_are_refused_without_memory_too(words: str) -> None:
    with pytest.raises(InvalidArgument):
        codex.compose_unbound(PLAN, START.replace(native=tuple(words.split())))


@pytest.mark.requirement("R20", "R21", "R23")
def test_an_unbound_start_is_the_callers_words_and_nothing_else() -> None:
    native = ("-m", "x", "--enable", "memories", "-p", "work", "do this")
    plan = codex.compose_unbound(PLAN, START.replace(native=native))
    assert plan == PLAN.replace(argv=("codex", *native))
    resumed = codex.compose_unbound(PLAN, START.replace(resume="id-1", native=("-m", "x", "go")))
    assert resumed.argv == ("codex", "resume", "-m", "x", "id-1")
    headless = codex.compose_unbound(PLAN, START.replace(native=("-m", "x"), prompt="@-x\n'"))
    assert headless.argv == ("codex", "exec", "--json", "--skip-git-repo-check", "-m", "x", "-")
    assert headless.stdin == "@-x\n'"
    assert not any("amux" in word for word in headless.argv)


@pytest.mark.requirement("R14", "R15")
def test_what_switches_the_own_memory_off_stands_last() -> None:
    for prompt in (None, "hello"):
        plan = composed("-m", "x", "--enable", "other", prompt=prompt)
        ours = [word for name in OFF for word in ("-c", f"{name}=false")]
        assert list(plan.argv[-8:]) == [*ours, "--disable", "memories"]
    # The first prompt is not repeated.
    resume = START.replace(resume="id-1", native=("do this",))
    resumed = codex.compose(PLAN, BOUND, resume, TERMINAL)
    assert "do this" not in resumed.argv
    assert resumed.argv[:2] == ("codex", "resume")
    assert resumed.argv[-3:] == ("--disable", "memories", "id-1")


@pytest.mark.requirement("R15", "R20")
def test_the_server_is_spelled_whole_whatever_its_names_hold() -> None:
    found = settings(composed())
    entry = {name.rpartition(".")[2]: value for name, value in found.items() if "amux" in name}
    assert entry["command"] == "/opt/amux"
    assert entry["args"] == ["mcp", "--tools", "memory"]
    assert entry["env"] == BOUND.environment
    assert entry["enabled"] is True
    assert entry["required"] is True
    assert entry["enabled_tools"] == list(BOUND.tools)
    assert entry["default_tools_approval_mode"] == "approve"
    assert composed().environment == {"HOME": "/h", **BOUND.environment}


@pytest.mark.requirement("R15", "run-16", "run-17")
def test_every_key_of_an_older_entry_is_set_again() -> None:
    entry = Entry(
        place="/h/.codex/config.toml", command="/old/amux", args=("mcp",),
        env=("AMUX_HUB", "AMUX_HOME"), tools=("memory_upsert",),
    )  # fmt: skip
    known = TERMINAL.replace(entries=(entry,))
    found = settings(composed(known=known))
    assert found["mcp_servers.amux.env"] == {"AMUX_HOME": "", **BOUND.environment}
    assert found["mcp_servers.amux.disabled_tools"] == []
    assert found["mcp_servers.amux.env_vars"] == []
    assert found["mcp_servers.amux.cwd"] == PLAN.cwd
    assert found["mcp_servers.amux.tools.memory_upsert.approval_mode"] == "approve"
    asking = codex.compose(PLAN, BOUND.replace(asks_writes=True), START, known)
    assert "mcp_servers.amux.default_tools_approval_mode" not in settings(asking)
    # What a person says of a tool stands; of the others amux asks.
    assert "mcp_servers.amux.tools.memory_upsert.approval_mode" not in settings(asking)
    assert settings(asking)["mcp_servers.amux.tools.memory_forget.approval_mode"] == "prompt"


@pytest.mark.requirement("R14", "R21", "run-9", "run-22")
@pytest.mark.parametrize("own", ["", "  \n", 'Mine "first"\\', "两行\n文本\x7f\t"])
def test_a_persons_text_comes_before_the_protocol(own: str) -> None:
    known = TERMINAL.replace(developer_instructions=own)
    merged = f"{own}\n\nPROTOCOL\n" if own.strip() else "PROTOCOL\n"
    native = ("-c", "developer_instructions=ignored: it is in what the probe read", "-m", "x")
    plan = composed(*native, known=known)
    assert settings(plan.replace(argv=plan.argv[3:]))["developer_instructions"] == merged
    assert sum("developer_instructions" in word for word in plan.argv) == 1
    headless = composed(*native, prompt="hello", known=known)
    assert headless.opening is not None
    assert headless.opening.developer_instructions == merged
    assert not any("PROTOCOL" in word for word in headless.argv)


@pytest.mark.requirement("R21", "run-22")
@pytest.mark.parametrize("kib", [101, 1024])
def test_a_text_that_is_too_long_for_an_argument_goes_by_the_pipe_or_is_refused(kib: int) -> None:
    known = TERMINAL.replace(developer_instructions="x" * 1024 * kib)
    with pytest.raises(LaunchRefused) as caught:
        composed(known=known)
    assert caught.value.details["step"] == "plan"
    headless = composed(prompt="hello", known=known)
    assert headless.opening is not None
    assert headless.opening.developer_instructions.startswith("x" * 1024 * kib)
    assert max(len(word) for word in headless.argv) < 1024


@pytest.mark.requirement("R21")
def test_flags_that_the_app_server_does_not_take_become_settings_or_are_refused() -> None:
    plan = composed("-m", "x", "-s", "read-only", "-anever", "--no-alt-screen", prompt="hello")
    found = settings(plan)
    assert found["model"] == "x"
    assert found["sandbox_mode"] == "read-only"
    assert found["approval_policy"] == "never"
    assert not {"-m", "-s", "-a", "--no-alt-screen"} & set(plan.argv)
    for words in (["--oss"], ["--add-dir", "/x"], ["-i", "a.png"], ["a prompt"]):
        with pytest.raises(InvalidArgument):
            composed(*words, prompt="hello")


@pytest.mark.requirement("R14")
def test_a_terminal_has_a_process_of_its_own_once() -> None:
    assert composed("--no-daemon").argv.count("--no-daemon") == 1
    assert composed().argv.count("--no-daemon") == 1
    without = TERMINAL.replace(has_daemon=False)
    assert "--no-daemon" not in composed("--no-daemon", known=without).argv
    assert composed("do this").argv[-1] == "do this"
