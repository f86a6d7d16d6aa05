"""The verbs on documents, driven against a fake Hub: what they send, print and refuse."""

import json
from pathlib import Path

import pytest

from amux.errors import RevisionConflict
from amux.memory import limits
from tests.support.command import Command
from tests.support.fake_hub import ABSENT, FakeHub, revision

CREATE = ("--expected-revision", ABSENT)


@pytest.mark.requirement("M49")
def test_search_sends_its_words_and_options(amux: Command, hub: FakeHub) -> None:
    hub.answers["search"] = {"hits": []}
    amux.run("memory", "search", "NOT", '"x', "--limit=3", "--path-prefix", "a/", "--", "-v")
    query = {"query": 'NOT "x -v', "limit": 3, "path_prefix": "a/"}
    assert hub.calls == [("search", query)]


@pytest.mark.requirement("M49")
def test_search_on_a_terminal_says_where_and_what_it_does_not_prove(
    amux: Command, hub: FakeHub
) -> None:
    hub.answers["search"] = {
        "hits": [
            {
                "path": "notes/a.md", "revision": "f" * 64, "line": 7, "snippet_line": 6,
                "snippet": "before\nthe word\n", "truncated": True, "matched_terms": [0],
            }
        ],
        "terms": [{"term": "word", "documents": 1}],
        "scanned_files": 4, "skipped_files": 2,
        "incomplete": True, "truncated": True, "relaxed": True,
    }  # fmt: skip
    out = amux.run("memory", "search", "word", is_terminal=True).out.decode()
    assert "notes/a.md:7" in out
    assert "    the word\n" in out
    for word in ("incomplete", "truncated", "relaxed", "word in 1", "2 files"):
        assert word in out


@pytest.mark.requirement("M49")
def test_show_sends_its_lines_and_a_missing_document_is_no_error(
    amux: Command, hub: FakeHub
) -> None:
    done = amux.run("memory", "show", "a.md", "--start-line", "2", "--end-line=3")
    assert done.answer["exists"] is False
    assert hub.calls == [("get", {"path": "a.md", "start_line": 2, "end_line": 3})]
    assert b"no such document" in amux.run("memory", "show", "a.md", is_terminal=True).out


@pytest.mark.requirement("M49", "bug-42")
@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbfa\r\nb", b"\n\n", "用户\u0085".encode(), b"a\r"]
)
def test_upsert_reads_raw_bytes_of_a_file_or_of_standard_input(
    amux: Command, hub: FakeHub, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "f.md").write_bytes(data)
    done = amux.run("memory", "upsert", "a.md", *CREATE, stdin=data)
    assert done.answer["revision"] == revision(data)
    amux.run("memory", "upsert", "b.md", *CREATE, "--file", str(tmp_path / "f.md"))
    amux.run("memory", "upsert", "c.md", *CREATE, "--file", "-", stdin=data)
    assert set(hub.documents.values()) == {data}
    assert set(hub.documents) == {"a.md", "b.md", "c.md"}
    assert amux.run("memory", "export", "a.md").out == data


@pytest.mark.requirement("M48", "M49")
def test_content_that_is_not_utf8_is_refused_with_its_place(amux: Command, hub: FakeHub) -> None:
    done = amux.run("memory", "upsert", "a.md", *CREATE, stdin=b"abc\xff")
    assert done.code == "invalid_argument"
    assert done.details == {"argument": "content", "at": 3}
    assert hub.calls == []


@pytest.mark.requirement("M48", "M49")
@pytest.mark.parametrize("data", [b"x" * (limits.BODY_MAX_BYTES + 1), b"\x01" * (100 * 1024)])
def test_a_body_over_the_limit_is_refused_before_it_is_sent(
    amux: Command, hub: FakeHub, data: bytes
) -> None:
    done = amux.run("memory", "upsert", "a.md", *CREATE, stdin=data)
    assert done.code == "limit_exceeded"
    assert done.details == {"max_bytes": limits.BODY_MAX_BYTES}
    assert hub.calls == []


def test_a_file_that_cannot_be_read_is_refused(amux: Command, hub: FakeHub, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "none.md"):
        done = amux.run("memory", "upsert", "a.md", *CREATE, "--file", str(file))
        assert done.details["argument"] == "file"
    assert hub.calls == []


@pytest.mark.requirement("bug-23")
def test_a_stale_revision_is_refused_with_the_current_one(amux: Command, hub: FakeHub) -> None:
    hub.documents["a.md"] = b"now"
    for words in (("upsert",), ("forget",)):
        done = amux.run("memory", *words, "a.md", "--expected-revision", "0" * 64)
        assert done.status == 3
        assert done.details["observed"] == revision(b"now")


@pytest.mark.requirement("M28")
def test_a_write_whose_answer_is_lost_is_not_repeated(amux: Command, hub: FakeHub) -> None:
    hub.silent = {"upsert"}
    done = amux.run("memory", "upsert", "a.md", *CREATE, stdin=b"x")
    assert done.status == 6
    assert hub.names() == ["upsert"]


@pytest.mark.requirement("M28", "M53")
def test_a_read_that_is_not_answered_is_unavailable_and_starts_no_other_hub(
    amux: Command, hub: FakeHub
) -> None:
    hub.silent = {"get"}
    done = amux.run("memory", "show", "a.md")
    assert done.code == "unavailable"
    assert hub.names() == ["get"]


@pytest.mark.requirement("M33")
def test_export_gives_the_exact_bytes_of_many_pages(amux: Command, hub: FakeHub) -> None:
    data = "# 用户 😀\r\nno newline at the end".encode()
    hub.documents["a.md"] = data
    assert amux.run("memory", "export", "a.md").out == data
    assert len(hub.calls) > 1


@pytest.mark.requirement("M33")
def test_export_of_a_missing_document_is_not_found(amux: Command, hub: FakeHub) -> None:
    assert amux.run("memory", "export", "a.md").code == "not_found"
    assert hub.names() == ["get"]


@pytest.mark.requirement("M33")
@pytest.mark.parametrize("after", [b"B" * 60, b"B", None], ids=["longer", "shorter", "gone"])
def test_export_reads_again_once_when_the_document_changes(
    amux: Command, hub: FakeHub, after: bytes | None
) -> None:
    hub.documents["a.md"] = b"A" * 40

    def change(_name: str, _given: dict[str, object]) -> None:
        if len(hub.calls) == 2 and after is not None:
            hub.documents["a.md"] = after
        elif len(hub.calls) == 2:
            del hub.documents["a.md"]

    hub.before = change
    done = amux.run("memory", "export", "a.md")
    if after is None:
        assert done.code == "not_found"
    else:
        assert done.out == after


@pytest.mark.requirement("M33")
def test_export_of_a_document_that_keeps_changing_prints_nothing(
    amux: Command, hub: FakeHub
) -> None:
    def change(_name: str, _given: dict[str, object]) -> None:
        hub.documents["a.md"] = b"%04d" % len(hub.calls) * 10

    hub.before = change
    done = amux.run("memory", "export", "a.md")
    assert done.status == 3
    assert done.code == "revision_conflict"
    assert len(hub.calls) <= 6


@pytest.mark.requirement("M49")
def test_list_and_check_send_their_options(amux: Command, hub: FakeHub) -> None:
    hub.documents["a/b.md"] = b"x"
    assert amux.run("memory", "list", "--path-prefix=a/").answer["documents"]
    assert b"a/b.md" in amux.run("memory", "list", is_terminal=True).out
    assert amux.run("memory", "check").answer["broken"] == []
    assert amux.run("memory", "check", "--remove", "x.md").answer["removed"] is True
    assert [name for name, _ in hub.calls] == ["list", "list", "check", "discard"]


@pytest.mark.requirement("M53")
def test_with_no_hub_and_no_autostart_a_call_is_unavailable(amux: Command) -> None:
    done = amux.run("memory", "show", "a.md")
    assert done.code == "unavailable"
    assert done.status == 5


@pytest.mark.requirement("M53")
def test_a_refusal_of_the_hub_starts_no_other(amux: Command, hub: FakeHub) -> None:
    hub.answers["get"] = RevisionConflict("no", observed="x")
    amux.run("memory", "show", "a.md")
    assert hub.names() == ["get"]


@pytest.mark.requirement("M6", "M47")
def test_a_setting_goes_to_the_hub_that_runs_and_a_due_restart_is_told(
    amux: Command, hub: FakeHub
) -> None:
    done = amux.run("system", "config", "set", "memory.enabled", "true")
    assert done.answer["saved"] == "true"
    assert b"amux hub restart" in done.err
    assert hub.calls == [("settings", {"name": "memory.enabled", "value": "true"})]


@pytest.mark.requirement("M6")
def test_status_shows_saved_and_effective_values(amux: Command, hub: FakeHub) -> None:
    found = amux.run("system", "config", "get", "memory.enabled").answer
    assert found == {
        "name": "memory.enabled", "saved": True, "effective": False, "restart_due": True,
    }  # fmt: skip
    assert amux.run("system", "status").answer["restart_due"] is True
    assert b"restart is due" in amux.run("system", "status", is_terminal=True).out
    assert hub.names() == ["status"] * 3


@pytest.mark.requirement("M47")
def test_with_no_hub_settings_are_changed_in_process(amux: Command) -> None:
    class Offline:
        def ask(self, name: str, arguments: dict[str, object]) -> object:
            text = json.dumps({"name": name, **arguments, "restart_due": False})
            return type("Answer", (), {"text": text, "value": lambda _self: json.loads(text)})()

    amux.offline = Offline
    done = amux.run("system", "config", "set", "memory.enabled", "true")
    assert done.answer == {"name": "memory.enabled", "value": "true", "restart_due": False}
    assert done.err == b""


@pytest.mark.requirement("M53")
def test_hub_status_without_a_hub_says_so_and_starts_none(amux: Command, home: Path) -> None:
    found = amux.run("hub", "status").answer
    assert found == {"running": False, "root": str(home)}
    assert not home.exists()


@pytest.mark.requirement("M53")
def test_hub_status_shows_what_the_hub_is(amux: Command, hub: FakeHub) -> None:
    found = amux.run("hub", "status").answer
    assert found["running"] is True
    assert found["pid"] == 1
    assert b"pid 1" in amux.run("hub", "status", is_terminal=True).out
    assert hub.names() == ["status"] * 2
