"""The writers of the journal as tools: what they write, refuse, recognise and leave alone."""

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amux.errors import AmuxError, Code
from amux.journal.sessions import scribe
from amux.journal.store.files import Edit, Edited
from amux.journal.text import section as sections
from tests.support.rights import cannot
from tests.support.roots import SECONDS, canonical_bytes, tree
from tests.support.writers import Receipt, Writer, workspace_in

DAY = ".memory/clients/codex/tasks/20260314.md"
SUMMARY = ".memory/clients/codex/SUMMARY.md"
MIDNIGHT = 1_773_504_600.0  # 2026-03-15 00:10 in Shanghai


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return workspace_in(tmp_path / "billing")


@pytest.fixture
def writer(base: Path) -> Writer:
    return Writer(base)


def day(base: Path) -> Path:
    return base / ".devcodex" / DAY


def summary(base: Path) -> Path:
    return base / ".devcodex" / SUMMARY


def stands(path: Path, data: bytes) -> Path:
    """Put a file there that has stood since long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(1_500_000_000_000_000_000,) * 2)
    return path


def refused(call: Callable[[], object]) -> tuple[Code, object]:
    with pytest.raises(AmuxError) as caught:
        call()
    return caught.value.code, caught.value.details["reason"]


def codes(receipt: Receipt) -> list[object]:
    warnings = receipt["warnings"]
    assert isinstance(warnings, list)
    return [warning["code"] for warning in warnings]


def part(receipt: Receipt, name: str) -> dict[str, object]:
    found = receipt[name]
    assert isinstance(found, dict)
    return found


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- opening and extending -----------------------------------------------------------------------


@pytest.mark.requirement("J40", "J71", "J75")
def test_a_section_is_opened_with_its_header_to_the_byte(base: Path) -> None:
    """The vector of J75, whose id is 03."""
    stands(day(base), b"## \xe4\xbc\x9a\xe8\xaf\x9d 02\n")
    writer = Writer(base, chance=lambda count: b"\xab" * count)
    found = writer.call(
        "allocate",
        title="Export endpoint returns stale totals",
        intent="fix",
        sourceMessage="totals in the CSV lag one day",
    )
    header = day(base).read_bytes().partition(b"\n\n")[2]
    assert len(header) == 359
    assert sha(header) == "e08a903812d0ec209326e9446866186bf4b66ccc78e14f4529e1f67a60adbeca"
    assert found["section"] == "03-abababababab"
    assert found["sessionBinding"] == "ab" * 32
    assert found["sessionId"] == "03"
    assert found["date"] == "20260314"
    assert found["sessionBindingSchemaVersion"] == "MemorySessionBindingV1"
    assert part(found, "transaction")["afterDigest"] == sha(day(base).read_bytes())


@pytest.mark.requirement("J71")
def test_a_write_without_section_opens_one_and_its_handle_extends_it(
    base: Path, writer: Writer
) -> None:
    opened = writer.write("first words", title="Totals", intent="fix+dev")
    assert (opened["opened"], opened["replayed"]) == (True, False)
    assert opened["targetBeforeDigest"] == "absent"
    assert opened["nextCall"] == {
        "tool": "memory_session_write",
        "arguments": {"section": opened["section"]},
        "fill": ["content"],
    }
    more = writer.write("second words", section=opened["section"], status="blocked")
    assert (more["opened"], more["section"]) == (False, opened["section"])
    assert "sessionBinding" not in more
    assert more["targetBeforeDigest"] == opened["targetAfterDigest"]
    text = day(base).read_bytes()
    assert more["targetAfterDigest"] == sha(text)
    assert text.endswith("first words\n\nsecond words\n\n- **状态**：⛔ blocked\n".encode())
    long = writer.write(
        "third",
        sessionId="01",
        sessionBinding=str(opened["sessionBinding"])[:16],
        status="completed",
    )
    assert long["section"] == opened["section"]
    assert long["nextCall"] is None


@pytest.mark.requirement("J71", "J63")
def test_text_is_put_at_the_end_of_its_own_section(base: Path, writer: Writer) -> None:
    first = writer.write("one", title="first")
    Writer(base, session="other").write("two", title="second")
    before = day(base).read_bytes()
    writer.write("more of one", section=first["section"])
    head, _, tail = before.partition("## 会话 02".encode())
    assert day(base).read_bytes() == (head + b"more of one\n\n" + "## 会话 02".encode() + tail)


@pytest.mark.requirement("J71", "J47", "J43")
def test_a_row_is_appended_after_the_text(base: Path, writer: Writer) -> None:
    found = writer.write("text", intent="fix", row="did it | well", status="completed")
    event = part(found, "summaryEvent")
    assert event["schemaVersion"] == "MemorySummaryEventReceiptV1"
    assert event["sessionKey"] == "2026-03-14#01"
    assert (event["currentState"], event["rowNumber"]) == ("completed", 7)
    assert summary(base).read_text(encoding="utf-8") == (
        "# Agent SUMMARY — codex\n\n> 项目：billing\n\n"
        "| 日期 | 会话 | 类型 | 摘要 | 关联报告 | 关联记忆 | 状态 |\n"
        "|------|:----:|------|------|---------|---------|:----:|\n"
        "| 2026-03-14 09:20 | 01 | fix | did it \\| well | — "
        "| [20260314.md](tasks/20260314.md) | ✅ |\n"
    )


@pytest.mark.requirement("J71")
def test_a_row_alone_is_of_the_section_and_changes_no_day(base: Path, writer: Writer) -> None:
    opened = writer.write("text")
    before = day(base).read_bytes()
    found = writer.write(section=opened["section"], row="half way")
    assert day(base).read_bytes() == before
    assert part(found, "transaction")["route"] == "no-op"
    assert part(found, "summaryEvent")["currentState"] == "active"
    assert "| other | half way |" in summary(base).read_text(encoding="utf-8")
    assert found["replayed"] is False


@pytest.mark.requirement("J66", "J71")
def test_artifacts_are_linked_in_the_section_the_card_and_the_row(
    base: Path, writer: Writer
) -> None:
    report = stands(base / ".devcodex/reports/x/01--a b.md", b"report")
    given = [
        {"label": "the report", "targetPath": "reports/x/01--a b.md", "purpose": "why"},
        {"label": "again", "targetPath": "reports/x/01--a b.md"},
    ]
    writer.write(
        "text", artifacts=given, row="see it", handoff={"next-action": "read it"}, status="active"
    )
    link = "[the report](<../../../../reports/x/01--a b.md>) — why"
    text = day(base).read_text(encoding="utf-8")
    assert text.endswith(
        f"text\n\n### 📄 关联报告\n\n- {link}\n\n### 🤝 ContextHandoffCard\n\n"
        "- **task**：—\n- **source-of-truth**：—\n- **confirmed-decisions**：—\n"
        "- **open-risks**：—\n- **next-action**：read it\n- **blocked-reason**：—\n"
        "- **must-not-overwrite**：—\n- **validation-state**：—\n"
        f"- **artifact-links**：{link} sha256:{sha(report.read_bytes())}\n\n"
        "- **状态**：🔄 active\n"
    )
    assert "| [the report](<../../../reports/x/01--a b.md>) — why |" in summary(base).read_text(
        encoding="utf-8"
    )


@pytest.mark.requirement("J66")
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../x.md", "PATH_INVALID"), ("/etc/passwd", "PATH_INVALID"), ("a\\b", "PATH_INVALID"),
        ("gone.md", "TARGET_MISSING"), ("no/where.md", "TARGET_MISSING"),
        ("x" * 300, "TARGET_MISSING"), (f"{'x' * 300}/y.md", "TARGET_MISSING"),
        ("folder/x.md/y.md", "REPARSE_REJECTED"),
        ("folder", "TARGET_INVALID"), ("fifo", "TARGET_INVALID"),
        ("link.md", "REPARSE_REJECTED"), ("linked/x.md", "REPARSE_REJECTED"),
    ],
)  # fmt: skip
def test_an_artifact_is_a_regular_file_of_the_root(
    base: Path, writer: Writer, target: str, reason: str
) -> None:
    root = base / ".devcodex"
    stands(root / "folder/x.md", b"x")
    os.mkfifo(root / "fifo")
    (root / "link.md").symlink_to("folder/x.md")
    (root / "linked").symlink_to("folder")
    before = tree(base)
    artifact = {"label": "it", "targetPath": target}
    for call in (
        lambda: writer.write("text", artifacts=[artifact]),
        lambda: writer.call("decide", decision="so", evidence=artifact),
        lambda: writer.call(
            "append",
            entry={"summary": "s", "status": "active", "type": "fix", "sessionId": "1"},
            reportArtifact=artifact,
        ),
    ):
        assert refused(call) == (Code.INVALID_ARGUMENT, f"ARTIFACT_LINK_{reason}")
    assert tree(base) == before


@pytest.mark.requirement("J66")
def test_links_of_free_text_are_remarked_and_written(base: Path, writer: Writer) -> None:
    stands(base / ".devcodex/reports/a.md", b"x")
    found = writer.write(
        "see [a](../../../../reports/a.md), [b](gone.md),\n[c](/etc/passwd) and [d](https://x.y)"
    )
    assert found["warnings"] == [
        {"code": "link-target-missing", "line": 1}, {"code": "link-not-relative", "line": 2},
    ]  # fmt: skip


@pytest.mark.requirement("J66")
@pytest.mark.parametrize(
    "href",
    ["a%00b", "%ff", "x" * 300, "../" * 40 + "x", "<a b>", "a\\b", "%2e%2e/%2e%2e/x", "?", "#"],
)
def test_no_link_of_free_text_can_break_a_write(writer: Writer, href: str) -> None:
    found = writer.write(f"see [it]({href})", title=href[:20])
    assert set(codes(found)) <= {"link-target-missing", "link-not-relative"}


@pytest.mark.requirement("J40", "J32")
def test_a_section_of_an_unknown_agent_says_why(base: Path) -> None:
    Writer(base, client=None, session="").write("text")
    text = (base / ".devcodex/.memory/clients/unknown-agent/tasks/20260314.md").read_text("utf-8")
    assert "- **宿主**：unknown-agent（" in text


# --- repeats -------------------------------------------------------------------------------------


@pytest.mark.requirement("J65")
def test_the_same_call_again_writes_nothing_and_says_so(base: Path, writer: Writer) -> None:
    stands(base / ".devcodex/a.md", b"x")
    given: Receipt = {
        "title": "Totals", "intent": "fix", "sourceMessage": "why", "row": "did it",
        "status": "active", "handoff": {"next-action": "go on"},
        "artifacts": [{"label": "a", "targetPath": "a.md"}],
    }  # fmt: skip
    first = writer.write("text", **given)
    before = tree(base)
    again = Writer(base, at=SECONDS + 600).write("text", **given)
    assert tree(base) == before
    assert again["replayed"] is True
    assert again["opened"] is True
    assert again["section"] == first["section"]
    assert again["sessionBinding"] == first["sessionBinding"]
    assert part(again, "transaction")["route"] == "no-op"
    assert part(again, "summaryEvent")["replayed"] is True
    assert again["targetBeforeDigest"] == again["targetAfterDigest"] == first["targetAfterDigest"]
    more = {"section": first["section"], "status": "completed", "row": "done"}
    writer.write("more", **more)
    before = tree(base)
    assert writer.write("more", **more)["replayed"] is True
    assert tree(base) == before


@pytest.mark.requirement("J65")
@pytest.mark.parametrize(
    "change",
    [
        {"title": "other"}, {"intent": "dev"}, {"sourceMessage": "other"}, {"content": "other"},
        {"status": "blocked"}, {"status": None}, {"handoff": {"next-action": "x"}},
    ],
)  # fmt: skip
def test_another_call_is_no_repeat(writer: Writer, change: Receipt) -> None:
    given: Receipt = {
        "content": "text", "title": "T", "intent": "fix", "sourceMessage": "m", "status": "active",
    }  # fmt: skip
    writer.call("write", **given)
    changed = {key: value for key, value in {**given, **change}.items() if value is not None}
    assert writer.call("write", **changed)["sessionId"] == "02"


@pytest.mark.requirement("J65")
def test_an_empty_section_is_found_again_and_only_by_its_session(
    base: Path, writer: Writer
) -> None:
    first = writer.call("allocate", title="T")
    again = writer.call("allocate", title="T")
    assert (again["section"], again["replayed"]) == (first["section"], True)
    assert Writer(base, session="other").call("allocate", title="T")["sessionId"] == "02"
    # A later section of the same session is the one that a repeat must equal.
    assert writer.call("allocate", title="U")["sessionId"] == "03"
    assert writer.call("allocate", title="T")["sessionId"] == "04"


@pytest.mark.requirement("J65", "J71")
def test_a_repeat_completes_what_is_missing(base: Path, writer: Writer) -> None:
    first = writer.write("text", row="did it")
    summary(base).unlink()
    again = writer.write("text", row="did it")
    assert again["section"] == first["section"]
    assert part(again, "transaction")["route"] == "no-op"
    assert part(again, "summaryEvent")["replayed"] is False
    assert again["replayed"] is False
    assert summary(base).exists()


@pytest.mark.requirement("J65")
def test_a_row_and_a_decision_repeat_whatever_the_clock(base: Path, writer: Writer) -> None:
    entry = {"summary": "s", "status": "active", "type": "fix", "sessionId": "1"}
    writer.write("text")
    late = Writer(base, at=SECONDS + 900)
    assert writer.call("append", entry=entry)["replayed"] is False
    assert writer.call("decide", decision="so", reason="why")["replayed"] is False
    before = tree(base)
    assert late.call("append", entry=entry)["replayed"] is True
    assert Writer(base, at=MIDNIGHT).call("decide", decision="so", reason="why")["replayed"] is True
    assert tree(base) == before
    assert late.call("append", entry={**entry, "status": "completed"})["replayed"] is False
    assert writer.call("append", entry=entry)["replayed"] is False
    assert late.call("decide", decision="so", reason="other")["rowNumber"] == 8


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.requirement("JA10", "J74", "J7", "J39")
def test_what_does_not_open_a_section_changes_nothing(base: Path, writer: Writer) -> None:
    one = writer.write("one", title="1")
    two = Writer(base, session="b").write("two", title="2")
    before = canonical_bytes(base)
    token = str(one["sessionBinding"])
    cases: list[tuple[Receipt, Code, str]] = [
        (
            {"content": "x", "sessionId": "02", "sessionBinding": token},
            Code.PERMISSION_DENIED,
            "MEMORY_SESSION_BINDING_MISMATCH",
        ),
        (
            {"content": "x", "section": f"02-{token[:12]}"},
            Code.PERMISSION_DENIED,
            "MEMORY_SESSION_BINDING_MISMATCH",
        ),
        (
            {"content": "x", "section": str(two["section"])[:-1]},
            Code.INVALID_ARGUMENT,
            "MEMORY_SESSION_BINDING_INVALID",
        ),
        (
            {"content": "x", "sessionId": "02"},
            Code.INVALID_ARGUMENT,
            "MEMORY_SESSION_BINDING_REQUIRED",
        ),
        (
            {"content": "x", "section": f"77-{token[:12]}"},
            Code.NOT_FOUND,
            "MEMORY_SESSION_NOT_FOUND",
        ),
        (
            {"content": "x" * 262_145},
            Code.LIMIT_EXCEEDED,
            "MEMORY_WRITER_ARGUMENT_TOO_LARGE",
        ),
        ({"content": "x", "x": 1}, Code.INVALID_ARGUMENT, "MEMORY_ARGUMENT_UNKNOWN"),
    ]
    for given, code, reason in cases:
        assert refused(lambda given=given: writer.call("write", **given)) == (code, reason)
    assert canonical_bytes(base) == before


@pytest.mark.requirement("JA11", "J71", "J63")
@pytest.mark.parametrize(
    "line",
    [
        "## 会话 09", "```\n## 会话 09\n```", "a\r\n## 会话 09\r\nb", "\uff03\uff03 会话 09",
        "a\u2028## 会话 09", "#\u200b# 会\u200b话 09", "   ## 会话", "##\t会话 09",
        "<!-- amux:session 0123456789abcdef -->",
        f"<!-- devcodex:memory-session-binding v1 session=09 token={'ab' * 32} -->",
    ],
)  # fmt: skip
def test_new_text_that_would_be_read_as_structure_is_refused(
    base: Path, writer: Writer, line: str
) -> None:
    first = writer.write("one")
    before = canonical_bytes(base)
    for given in ({"section": first["section"]}, {"title": "new"}):
        code, reason = refused(lambda given=given: writer.write(line, **given))
        # What nobody sees is refused before anything looks at structure; both are refusals.
        assert code is Code.INVALID_ARGUMENT
        assert reason == "MEMORY_SESSION_WRITE_VERIFICATION_FAILED"
    assert canonical_bytes(base) == before


@pytest.mark.requirement("JA11", "J7")
def test_a_bidi_override_is_refused_by_its_code_point(base: Path, writer: Writer) -> None:
    writer.write("one")
    before = canonical_bytes(base)
    with pytest.raises(AmuxError) as caught:
        writer.write("a\u202eb")
    assert caught.value.details["reason"] == "MEMORY_WRITER_ARGUMENT_INVALID"
    assert caught.value.details["character"] == "U+202E"
    assert canonical_bytes(base) == before


@pytest.mark.requirement("JA12", "J39", "J74")
def test_only_a_managed_section_is_extended(base: Path, writer: Writer) -> None:
    marker = "<!-- devcodex:memory-session-binding v1 session={} token=" + "ab" * 32 + " -->\n"
    data = (
        "## 会话 01 — by hand\n\ntext\n\n"
        f"## 会话 02\n{marker.format('02')}{marker.format('02')}\n"
        f"## 会话 03\n{marker.format('03')}\n## 会话 03\n{marker.format('03')}\n"
        f"## 会话 04\n{marker.format('05')}\n"
    ).encode()
    stands(day(base), data)
    before = canonical_bytes(base)
    for number, code, reason in (
        ("01", Code.PERMISSION_DENIED, "MEMORY_SESSION_BINDING_UNAVAILABLE"),
        ("02", Code.CORRUPT, "MEMORY_SESSION_LAYOUT_INVALID"),
        ("03", Code.AMBIGUOUS, "MEMORY_SESSION_AMBIGUOUS"),
        ("04", Code.CORRUPT, "MEMORY_SESSION_LAYOUT_INVALID"),
    ):
        section = f"{number}-{'ab' * 6}"
        assert refused(lambda section=section: writer.write("x", section=section)) == (code, reason)
    for name, data in before.items():
        assert canonical_bytes(base)[name] == data


@pytest.mark.requirement("JA13", "J34", "J35", "J40")
def test_a_malformed_heading_ends_a_section_and_blocks_nothing(base: Path, writer: Writer) -> None:
    first = writer.write("one")
    with day(base).open("ab") as file:
        file.write("\n## 会话\nloose\n\n## 会话 99999999999999999999\n".encode())
    writer.write("more", section=first["section"])
    text = day(base).read_text(encoding="utf-8")
    assert text.index("more") < text.index("## 会话\nloose")
    assert Writer(base, session="b").write("new", title="new")["sessionId"] == "02"


@pytest.mark.requirement("J34", "J36", "J40", "J63")
def test_an_unterminated_heading_is_closed_and_nothing_is_lost(base: Path, writer: Writer) -> None:
    stands(day(base), "## 会话 12\n\n## 会话 1".encode())
    assert writer.write("new")["sessionId"] == "13"
    assert day(base).read_bytes().startswith("## 会话 12\n\n## 会话 1\n\n## 会话 13 — ".encode())


@pytest.mark.requirement("JA19", "J46", "J71")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("| 2026-03-14 | 01 | fix/dev | s | — | — | ✅ |", "SUMMARY_TYPE_SLASH"),
        ("| 2026-03-14 | 01 | release | s | — | — | ✅ |", "SUMMARY_TYPE_NON_CANONICAL"),
        ("| 2026-03-14 | 01 |  | s | — | — | ✅ |", "SUMMARY_TYPE_EMPTY"),
        ("| 2026-03-14 | 01 | fix dev | s | — | — | ✅ |", "SUMMARY_TYPE_WHITESPACE"),
        ("| 2026-03-14 | 01 | fix | s | — | ✅ |", "MEMORY_WRITER_ARGUMENT_INVALID"),
        ("| 2026-02-30 | 01 | fix | s | — | — | ✅ |", "MEMORY_WRITER_ARGUMENT_INVALID"),
        ("| 2026-03-14 | 01 | fix | s | — | — | someday |", "MEMORY_WRITER_ARGUMENT_INVALID"),
    ],
)  # fmt: skip
def test_a_row_that_is_none_is_refused(base: Path, writer: Writer, row: str, reason: str) -> None:
    writer.write("text", row="first")
    before = canonical_bytes(base)
    assert refused(lambda: writer.call("append", row=row)) == (Code.INVALID_ARGUMENT, reason)
    assert canonical_bytes(base) == before


@pytest.mark.requirement("JA19", "J46")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("fix/dev", "SLASH"), ("release", "NON_CANONICAL"), ("", "EMPTY"),
        ("fix dev", "WHITESPACE"), ("fix+fix", "NON_CANONICAL"),
        ("unspecified", "NON_CANONICAL"), ("FIX", "NON_CANONICAL"),
    ],
)  # fmt: skip
def test_an_entry_and_a_section_have_a_canonical_type(
    base: Path, writer: Writer, kind: str, reason: str
) -> None:
    writer.write("text")
    before = canonical_bytes(base)
    entry = {"summary": "s", "status": "active", "type": kind, "sessionId": "1"}
    wanted = (Code.INVALID_ARGUMENT, f"SUMMARY_TYPE_{reason}")
    assert refused(lambda: writer.call("append", entry=entry)) == wanted
    if kind != "unspecified":
        assert refused(lambda: writer.write("x", title="n", intent=kind)) == wanted
        assert refused(lambda: writer.call("allocate", title="n", intent=kind)) == wanted
    assert canonical_bytes(base) == before


GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0guX"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----"
URL = "postgres://u1:p4ssw0rdX9@db.internal/x"


@pytest.mark.requirement("JA32", "J11")
@pytest.mark.parametrize("secret", [GITHUB, PEM, URL])
def test_a_secret_is_refused_by_line_and_kind_and_never_echoed(
    base: Path, writer: Writer, secret: str
) -> None:
    first = writer.write("text", row="row")
    before = canonical_bytes(base)
    line = secret.partition("\n")[0]
    calls: list[Callable[[], object]] = [
        lambda: writer.write(f"one\n{secret}", section=first["section"]),
        lambda: writer.write("x", section=first["section"], row=line),
        lambda: writer.write("x", section=first["section"], handoff={"next-action": line}),
        lambda: writer.write("x", title=line),
        lambda: writer.call("decide", decision="so", reason=line),
        lambda: writer.call(
            "append",
            entry={"summary": line, "status": "active", "type": "fix", "sessionId": "1"},
        ),
        lambda: writer.call("append", row=f"| 2026-03-14 | 01 | fix | {line} | — | — | ✅ |"),
    ]
    for number, call in enumerate(calls):
        if secret == PEM and number:  # a key is a block of lines: only a text can hold it
            break
        with pytest.raises(AmuxError) as caught:
            call()
        assert caught.value.code is Code.SECRET_DETECTED
        assert caught.value.details["reason"] == "MEMORY_SECRET_SUSPECTED"
        assert caught.value.details["line"] == (1 if number else 2)
        assert secret[8:] not in json.dumps(caught.value.body())
    assert canonical_bytes(base) == before


@pytest.mark.requirement("JA32", "J11")
def test_what_is_only_shaped_like_a_secret_is_written_with_a_warning(
    base: Path, writer: Writer
) -> None:
    found = writer.write("a\nb\npassword=hunter22")
    assert found["warnings"] == [{"code": "secret-like", "line": 3}]
    assert b"password=hunter22" in day(base).read_bytes()
    controls = "password policy\n40 hex: 0123456789abcdef0123456789abcdef01234567"
    assert writer.write(controls, title="controls")["warnings"] == []


@pytest.mark.requirement("J71")
def test_all_checks_of_all_parts_come_before_the_first_commit(base: Path, writer: Writer) -> None:
    summary(base).parent.mkdir(parents=True)
    os.mkfifo(summary(base))
    wanted = (Code.CORRUPT, "MEMORY_FILE_NOT_REGULAR")
    assert refused(lambda: writer.write("text", row="row")) == wanted
    assert not day(base).exists()


@pytest.mark.requirement("J71")
def test_a_failure_of_the_row_is_told_with_the_same_call_as_the_next(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = scribe.Scribe.write_summary

    def fails(*_: object) -> object:
        raise AmuxError("the test broke it", reason="MEMORY_DISK_FULL")

    monkeypatch.setattr(scribe.Scribe, "write_summary", fails)
    found = writer.write("text", row="row", title="T")
    assert (found["summaryEvent"], codes(found)) == (None, ["row-pending"])
    assert found["replayed"] is False
    next_call = part(found, "nextCall")
    assert next_call["arguments"] == {"content": "text", "row": "row", "title": "T"}
    monkeypatch.setattr(scribe.Scribe, "write_summary", write)
    arguments = next_call["arguments"]
    assert isinstance(arguments, dict)
    again = writer.call("write", **arguments)
    assert again["section"] == found["section"]
    assert part(again, "summaryEvent")["rowNumber"] == 7
    assert codes(again) == []


@pytest.mark.requirement("J63", "J25")
def test_a_lock_lost_between_the_parts_does_no_part_twice(
    base: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = scribe.Scribe.write_summary
    seen: list[str] = []

    def loses(self: scribe.Scribe, edit: Edit[object]) -> object:
        def once(old: bytes | None) -> Edited[object]:
            seen.append("row")
            if len(seen) == 1:
                (base / ".devcodex/.runtime-state/memory.lock").unlink()
            return edit(old)

        return write(self, once)

    monkeypatch.setattr(scribe.Scribe, "write_summary", loses)
    found = writer.write("text", row="row")
    assert seen == ["row", "row"]
    assert part(found, "transaction")["route"] == "create"
    assert part(found, "summaryEvent")["rowNumber"] == 7
    assert day(base).read_bytes().count(b"text") == 1


# --- days, dates, other people's bytes -----------------------------------------------------------


@pytest.mark.requirement("JA18", "J47", "J71")
def test_a_session_that_goes_on_after_midnight_stays_one(base: Path, writer: Writer) -> None:
    first = writer.write("evening", row="begun")
    night = Writer(base, at=MIDNIGHT)
    night.write("new day", title="other", row="another")
    found = night.write("done", section=first["section"], row="finished", status="completed")
    assert found["date"] == "20260314"
    assert part(found, "summaryEvent")["sessionKey"] == "2026-03-14#01"
    rows = summary(base).read_text(encoding="utf-8").splitlines()[-3:]
    assert [row.split("|")[1].strip() for row in rows] == [
        "2026-03-14 09:20", "2026-03-15 00:10", "2026-03-14",
    ]  # fmt: skip
    assert rows[-1].endswith("| [20260314.md](tasks/20260314.md) | ✅ |")
    assert not (base / ".devcodex/.memory/clients/codex/tasks/20260313.md").exists()


@pytest.mark.requirement("J71", "J74")
def test_the_same_id_today_and_yesterday_is_told_apart_by_its_token(
    base: Path, writer: Writer
) -> None:
    yesterday = writer.write("evening")
    night = Writer(base, at=MIDNIGHT)
    today = night.write("morning", title="other")
    assert (yesterday["sessionId"], today["sessionId"]) == ("01", "01")
    assert night.write("more", section=yesterday["section"])["date"] == "20260314"
    assert night.write("more", section=today["section"])["date"] == "20260315"
    later = Writer(base, at=MIDNIGHT + 2 * 86_400)
    assert refused(lambda: later.write("x", section=today["section"])) == (
        Code.NOT_FOUND, "MEMORY_SESSION_NOT_FOUND",
    )  # fmt: skip
    found = later.write("x", section=today["section"], date="20260315")
    assert part(found, "nextCall")["arguments"] == {
        "section": today["section"], "date": "20260315",
    }  # fmt: skip


@pytest.mark.requirement("J71", "J47")
def test_an_entry_goes_under_the_day_of_its_section(base: Path, writer: Writer) -> None:
    writer.write("evening")
    night = Writer(base, at=MIDNIGHT)
    entry = {"summary": "s", "status": "active", "type": "fix", "sessionId": "1"}
    assert night.call("append", entry=entry)["sessionKey"] == "2026-03-14#01"
    lost = night.call("append", entry={**entry, "sessionId": "9"})
    assert (lost["sessionKey"], codes(lost)) == ("2026-03-15#09", ["session-not-in-day"])
    there = night.call("append", entry={**entry, "day": "2026-03-14", "status": "completed"})
    assert (there["sessionKey"], codes(there)) == ("2026-03-14#01", [])
    row = night.call("append", row="| 2026-03-15 | 7 | fix | a \\| b | — | — | done, all |")
    assert (row["sessionKey"], row["currentState"]) == ("2026-03-15#07", "completed")
    assert (
        summary(base)
        .read_text(encoding="utf-8")
        .endswith("| 2026-03-15 00:10 | 07 | fix | a \\| b | — | — | ✅ |\n")
    )


@pytest.mark.requirement("J48", "J71")
def test_a_decision_is_recorded_below_peoples_text(base: Path, writer: Writer) -> None:
    path = stands(base / ".devcodex/.memory/SUMMARY.md", b"# ours\r\n\r\nprose\r\n")
    stands(base / ".devcodex/a.md", b"x")
    found = writer.call(
        "decide", decision="use | bars", impact="all", evidence={"label": "a", "targetPath": "a.md"}
    )
    assert (
        path.read_bytes()
        == (
            "# ours\r\n\r\nprose\r\n\r\n## 决策记录\r\n\r\n"
            "| 日期 | 决策 | 原因 | 影响范围 | 证据 |\r\n"
            "|------|------|------|---------|------|\r\n"
            "| 2026-03-14 | use \\| bars | — | all | [a](../a.md) |\r\n"
        ).encode()
    )
    assert (found["schemaVersion"], found["rowNumber"]) == ("MemoryDecisionReceiptV1", 9)


@pytest.mark.requirement("JA34", "J4", "J63")
@pytest.mark.parametrize(
    "old",
    [
        "## 会话 01 — a\r\n\r\ntext\r\n".encode(),
        b"\xef\xbb\xbf" + "## 会话 01 — a\n\ntext\n".encode(),
        "## 会话 01 — a\n\nno end".encode(),
        "## 会话 01 — a\n\n".encode() + b"bad \xff\xfe bytes\n",
        b"\n  \n\t\n", b"",
    ],
    ids=["crlf", "bom", "no-end", "bad-utf8", "blank", "empty"],
)  # fmt: skip
def test_old_bytes_are_all_there_in_order_and_new_lines_end_as_the_first(
    base: Path, writer: Writer, old: bytes
) -> None:
    tables = {
        day(base): old,
        summary(base): old.replace("## 会话 01 — a".encode(), b"# table"),
        base / ".devcodex/.memory/SUMMARY.md": old,
    }
    for path, data in tables.items():
        stands(path, data)
    first = writer.write("new\nlines", row="row", title="T")
    writer.write("more", section=first["section"])
    writer.call("decide", decision="so")
    for path, data in tables.items():
        new = path.read_bytes()
        assert new.startswith(data)
        added = new[len(data) :]
        is_crlf = old.partition(b"\n")[0].endswith(b"\r")
        assert added.count(b"\r\n") == (added.count(b"\n") if is_crlf else 0), path


@pytest.mark.requirement("JA28", "J63")
def test_a_day_that_is_linked_elsewhere_leaves_the_other_as_it_was(
    base: Path, writer: Writer
) -> None:
    writer.write("text")
    notes = base / "notes"
    notes.hardlink_to(day(base))
    before = notes.read_bytes()
    found = writer.write("more", title="second")
    assert b"more" in day(base).read_bytes()
    assert notes.read_bytes() == before
    assert found["replayed"] is False


@pytest.mark.requirement("J19", "J54", "J63")
@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder"])
def test_odd_things_are_refused_at_once_and_nothing_outside_is_touched(
    base: Path, writer: Writer, kind: str
) -> None:
    outside = base.parent / "outside"
    (outside / "tasks").mkdir(parents=True)
    codex = base / ".devcodex/.memory/clients/codex"
    wanted = (Code.CORRUPT, "MEMORY_FILE_NOT_REGULAR")
    if kind == "link":
        codex.parent.mkdir(parents=True)
        codex.symlink_to(outside)
        wanted = (Code.CORRUPT, "MEMORY_PATH_REPARSE_BLOCKED")
    else:
        (codex / "tasks").mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(day(base))
    elif kind == "folder":
        day(base).mkdir()
    elif kind == "device":
        if os.geteuid():
            cannot("only uid 0 makes devices")
        os.mknod(day(base), 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    writer.call("decide", decision="warm")
    begun = time.monotonic()
    assert refused(lambda: writer.write("text", row="row")) == wanted
    assert time.monotonic() - begun < 0.1
    assert tree(outside) == {"tasks": "/"}


@pytest.mark.requirement("J63", "J64", "JA14")
@pytest.mark.parametrize("times", [1, 2])
def test_an_edit_from_outside_meanwhile_is_kept(
    base: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    handles = [Writer(base, session=name).write(name, title=name)["section"] for name in "abc"]
    extend, count = sections.extend, 0

    def meanwhile(*given: object) -> object:
        nonlocal count
        count += 1
        if count <= times:
            with day(base).open("ab") as file:
                file.write(b"theirs %d\n" % count)
        return extend(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sections, "extend", meanwhile)
    if times == 1:
        found = writer.write("ours", section=handles[0])
        conflict = part(part(found, "transaction"), "conflict")
        assert conflict["status"] == "reconciled"
        assert b"ours" in day(base).read_bytes()
    else:
        assert refused(lambda: writer.write("ours", section=handles[0])) == (
            Code.REVISION_CONFLICT, "MEMORY_FILE_CAS_MISMATCH",
        )  # fmt: skip
        assert b"ours" not in day(base).read_bytes()
    assert b"theirs 1\n" in day(base).read_bytes()


@pytest.mark.requirement("J63", "JA14")
def test_an_edit_of_equal_size_within_one_tick_of_the_clock_is_kept(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(base, at=time.time())
    first = writer.write("aaaa")
    path = next((base / ".devcodex/.memory/clients/codex/tasks").iterdir())
    before = path.stat()
    extend, count = sections.extend, 0

    def meanwhile(*given: object) -> object:
        nonlocal count
        count += 1
        if count == 1:
            with path.open("r+b") as file:
                file.write(path.read_bytes().replace(b"aaaa", b"bbbb"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return extend(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sections, "extend", meanwhile)
    found = writer.write("ours", section=first["section"])
    assert b"bbbb\n\nours\n" in path.read_bytes()
    assert part(part(found, "transaction"), "conflict")["status"] == "reconciled"
