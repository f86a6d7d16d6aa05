"""A real Hub refuses secrets and invisible text on every face, keeps none of it, and logs none."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.client import Client
from amux.core import revision
from amux.errors import AmuxError, InvalidArgument, SecretDetected
from amux.wire import tools
from tests.support.hub import RunningHub, running_hub
from tests.support.mcp_lines import McpProcess, code
from tests.support.secrets import ASSIGNED, TOKENS, Sample, samples

TOKEN = next(samples({"github classic": TOKENS["github classic"]}, 1))
GUESS = next(samples({"password, yaml": ASSIGNED["password, yaml"]}, 1))
HIDDEN = "# Notes\n\nfine\u202eenif\n"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    with running_hub(tmp_path_factory.mktemp("guards") / "home") as found:
        yield found


def upsert(hub: RunningHub, path: str, text: str, **more: object) -> dict[str, object]:
    return hub.ask("upsert", path=path, content=text, expected_revision="absent", **more)


def kept_anywhere(home: Path, *values: str) -> list[Path]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return [path for path in files if any(value.encode() in path.read_bytes() for value in values)]


@pytest.mark.requirement("M77", "bug-26")
@pytest.mark.parametrize("sample", list(samples(TOKENS, 1)), ids=lambda sample: sample.format)
def test_a_token_is_refused_with_its_line_even_if_a_person_vouches(
    hub: RunningHub, sample: Sample
) -> None:
    for more in ({}, {"allow_secret_like": True}):
        with pytest.raises(SecretDetected) as caught:
            upsert(hub, "token.md", sample.text, **more)
        assert caught.value.details["line"] == sample.line
        assert caught.value.http_status == 422
        assert caught.value.exit_status == 2
    assert hub.ask("get", path="token.md")["exists"] is False


@pytest.mark.requirement("M77")
def test_the_owner_may_vouch_for_what_is_only_shaped_like_a_secret(hub: RunningHub) -> None:
    with pytest.raises(SecretDetected):
        upsert(hub, "guess.md", GUESS.text)
    with pytest.raises(SecretDetected):
        upsert(hub, "guess.md", GUESS.text, allow_secret_like=False)
    assert upsert(hub, "guess.md", GUESS.text, allow_secret_like=True)["changed"] is True


@pytest.mark.requirement("M77")
def test_the_entry_is_guarded_like_any_document(hub: RunningHub) -> None:
    with pytest.raises(SecretDetected):
        upsert(hub, "MEMORY.md", TOKEN.text)


@pytest.mark.requirement("M77")
def test_the_command_line_carries_the_word_of_a_person(hub: RunningHub) -> None:
    text = GUESS.text.encode()
    words = ["memory", "upsert", "vouched.md", "--expected-revision", "absent"]
    refused = hub.cli(*words, stdin=text)
    assert refused.returncode == 2
    assert json.loads(refused.stderr.splitlines()[-1])["error"]["code"] == "secret_detected"
    assert GUESS.secret.encode() not in refused.stderr + refused.stdout
    saved = hub.cli(*words, "--allow-secret-like", stdin=text)
    assert saved.returncode == 0, saved.stderr
    at = revision.of(text)
    words = ["memory", "move", "vouched.md", "moved.md", "--expected-revision", at]
    assert hub.cli(*words).returncode == 2
    assert hub.ask("get", path="vouched.md")["revision"] == at
    assert hub.cli(*words, "--allow-secret-like").returncode == 0
    assert hub.ask("get", path="moved.md")["revision"] == at


@pytest.mark.requirement("M77")
def test_edit_carries_the_word_of_a_person(hub: RunningHub, tmp_path: Path) -> None:
    typed = tmp_path / "typed"
    typed.write_text(GUESS.text, encoding="utf-8")
    editor = f"cp {typed}"
    refused = hub.cli("memory", "edit", "edited.md", EDITOR=editor, TMPDIR=str(tmp_path))
    assert json.loads(refused.stderr.splitlines()[-1])["error"]["code"] == "secret_detected"
    words = ["memory", "edit", "edited.md", "--allow-secret-like"]
    done = hub.cli(*words, EDITOR=editor, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("M77")
def test_an_agent_can_neither_see_nor_send_the_argument(hub: RunningHub) -> None:
    listed = {tool["name"]: tool for tool in tools.listing()}
    assert "allow_secret_like" not in json.dumps(listed)
    with McpProcess(hub.home) as agent:
        agent.initialize()
        given = {"path": "agent.md", "content": GUESS.text, "expected_revision": "absent"}
        text, is_refusal = agent.call("memory_upsert", **given)
        assert (code(text), is_refusal) == ("secret_detected", True)
        assert GUESS.secret not in text
        text, is_refusal = agent.call("memory_upsert", **given, allow_secret_like=True)
        assert (code(text), is_refusal) == ("invalid_argument", True)
        assert json.loads(text)["error"]["details"] == {"argument": "allow_secret_like"}
    assert hub.ask("get", path="agent.md")["exists"] is False


@pytest.mark.requirement("M78")
def test_invisible_text_is_refused_and_ordinary_text_kept_byte_for_byte(hub: RunningHub) -> None:
    for text, character, at in ((HIDDEN, "U+202E", 13), ("a\x00b", "U+0000", 1)):
        with pytest.raises(InvalidArgument) as caught:
            upsert(hub, "hidden.md", text, allow_secret_like=True)
        assert caught.value.details["reason"] == "invisible_text"
        assert caught.value.details["character"] == character
        assert caught.value.details["at"] == at
        assert caught.value.details["line"] == text[:10].count("\n") + 1
    assert hub.ask("get", path="hidden.md")["exists"] is False
    kept = "\ufeff# می\u200cخواهم \U0001f468\u200d\U0001f469\u200d\U0001f467 \u845b\U000e0100\r\n"
    upsert(hub, "kept.md", kept)
    assert (hub.memory_dir / "kept.md").read_bytes() == kept.encode()


@pytest.mark.requirement("M77", "M78")
def test_what_was_stored_before_is_read_found_and_forgotten(hub: RunningHub) -> None:
    data = (TOKEN.text + HIDDEN).encode()
    (hub.memory_dir / "older.md").write_bytes(data)
    assert hub.ask("get", path="older.md")["revision"] == revision.of(data)
    assert hub.ask("search", query="enif")["hits"]
    gone = hub.ask("forget", path="older.md", expected_revision=revision.of(data))
    assert gone["already_absent"] is False


@pytest.mark.requirement("M77")
def test_no_file_of_the_home_and_no_log_line_holds_a_refused_value(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running_hub(home) as hub:
        hub.stop()
        assert hub.cli("hub", "start", AMUX_NO_AUTOSTART="").returncode == 0
        try:
            client = Client(hub.config.socket_path)
            for sample in (TOKEN, GUESS):
                with pytest.raises(AmuxError):
                    client.ask(
                        "upsert",
                        {"path": "a.md", "content": sample.text, "expected_revision": "absent"},
                    )
        finally:
            hub.cli("hub", "stop")
    assert "refused: secret_detected" in (home / "run" / "hub.log").read_text(encoding="utf-8")
    assert not kept_anywhere(home, TOKEN.secret, GUESS.secret.split('"')[1])


@pytest.mark.requirement("M61")
@pytest.mark.parametrize("form", ["mcp", "cli"])
def test_the_protocol_is_printed_with_a_warning_beside_it(tmp_path: Path, form: str) -> None:
    hub = RunningHub(tmp_path / "home")
    plain = hub.cli("protocol", "--form", form)
    assert plain.returncode == 0
    assert b"own memory stays on" in plain.stderr
    answer = json.loads(hub.cli("protocol", "--form", form, "--json").stdout)
    assert answer["text"].encode() == plain.stdout
    assert answer["digest"] == revision.of(plain.stdout)
    assert (answer["form"], answer["version"]) == (form, 1)
    assert hub.cli("protocol").returncode == 2
    assert hub.cli("protocol", "--form", "html").returncode == 2
    assert not hub.home.exists()
