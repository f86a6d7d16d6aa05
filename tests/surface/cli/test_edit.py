"""`memory edit`: a real editor process, and no edited text is ever lost."""

import stat
import sys
from pathlib import Path

import pytest

from amux.errors import InvalidArgument
from tests.support.command import Command, Done
from tests.support.fake_hub import ABSENT, FakeHub, revision

BEFORE = "# 标题\nbefore\n".encode()
AFTER = "# 标题\nafter, long enough for pages\n".encode()


class Editing:
    """An editor that is a little Python program, with a document to edit."""

    def __init__(self, home: Path, hub: FakeHub) -> None:
        self.home = home
        self.hub = hub
        self.hub.documents["notes/a.md"] = BEFORE

    def edit(self, program: str, *, path: str = "notes/a.md") -> Done:
        script = self.home / "editor with blanks.py"
        script.write_text(
            "import os, sys, pathlib\nfile = pathlib.Path(sys.argv[-1])\n" + program,
            encoding="utf-8",
        )
        amux = Command(
            self.home,
            EDITOR="false",
            VISUAL=f"{sys.executable} '{script}' --wait",
            AMUX_NO_AUTOSTART="1",
        )
        return amux.run("memory", "edit", path)

    def left(self) -> list[Path]:
        return sorted(self.home.parent.glob("amux-edit-*"))


@pytest.fixture
def editing(home: Path, hub: FakeHub) -> Editing:
    return Editing(home, hub)


SAVES = f"file.write_bytes({AFTER!r})\n"


@pytest.mark.requirement("M50", "row-22")
def test_what_the_editor_saves_is_saved_at_the_revision_that_was_opened(editing: Editing) -> None:
    done = editing.edit(f"assert file.read_bytes() == {BEFORE!r}\n" + SAVES)
    assert done.answer == {"path": "notes/a.md", "revision": revision(AFTER), "changed": True}
    assert editing.hub.documents["notes/a.md"] == AFTER
    assert editing.hub.calls[-1][1]["expected_revision"] == revision(BEFORE)
    assert editing.left() == []


@pytest.mark.requirement("M50")
def test_the_copy_is_private_and_has_the_documents_name(editing: Editing) -> None:
    seen = editing.home / "seen"
    editing.edit(
        "modes = [oct(one.stat().st_mode & 0o777) for one in (file, file.parent)]\n"
        f"pathlib.Path({str(seen)!r}).write_text(' '.join([file.name, *modes]))\n"
    )
    assert seen.read_text() == "a.md 0o600 0o700"


@pytest.mark.requirement("M50")
def test_a_missing_document_opens_empty_and_is_created(editing: Editing) -> None:
    done = editing.edit("assert file.read_bytes() == b''\n" + SAVES, path="new.md")
    assert done.answer["revision"] == revision(AFTER)
    assert editing.hub.calls[-1][1]["expected_revision"] == ABSENT


@pytest.mark.requirement("M50", "row-22")
@pytest.mark.parametrize("path", ["notes/a.md", "new.md"])
@pytest.mark.parametrize("program", ["", "file.write_bytes(file.read_bytes())\n"])
def test_unchanged_bytes_write_nothing(editing: Editing, program: str, path: str) -> None:
    assert editing.edit(program, path=path).answer["changed"] is False
    assert set(editing.hub.names()) == {"get"}
    assert editing.left() == []


@pytest.mark.requirement("M50")
def test_an_editor_that_replaces_the_file_is_read_by_its_name(editing: Editing) -> None:
    program = (
        f"other = file.parent / 'x'\nother.write_bytes({AFTER!r})\n"
        "file.rename(str(file) + '~')\nos.chmod(other, 0o644)\nother.rename(file)\n"
    )
    assert editing.edit(program).answer["changed"] is True
    assert editing.left() == []


@pytest.mark.requirement("M50", "row-22")
@pytest.mark.parametrize(
    ("program", "code"),
    [
        (SAVES + "sys.exit(3)\n", "invalid_argument"),
        ("file.write_bytes(b'\\xff')\n", "invalid_argument"),
        ("file.write_bytes(b'x' * 600_000)\n", "limit_exceeded"),
        ("CONFLICT\n" + SAVES, "revision_conflict"),
        (
            "file.unlink()\nos.umask(0)\n" + SAVES + "assert file.stat().st_mode & 0o77\n"
            "sys.exit(3)\n",
            "invalid_argument",
        ),
    ],
    ids=["fails", "not utf-8", "too large", "conflict", "made public"],
)
def test_on_a_refusal_the_edited_text_stays_in_a_private_file_that_is_named(
    editing: Editing, program: str, code: str
) -> None:
    def change(name: str, _given: dict[str, object]) -> None:
        if name == "upsert":
            editing.hub.documents["notes/a.md"] = b"somebody else"

    editing.hub.before = change
    done = editing.edit(program.replace("CONFLICT\n", ""))
    assert done.code == code
    file = Path(str(done.details["file"]))
    assert file.read_bytes() not in {b"", BEFORE}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert editing.hub.documents["notes/a.md"] in {BEFORE, b"somebody else"}


@pytest.mark.requirement("M50", "row-22")
def test_an_editor_that_fails_without_a_change_leaves_nothing(editing: Editing) -> None:
    done = editing.edit("sys.exit(1)\n")
    assert done.code == "invalid_argument"
    assert "file" not in done.details
    assert editing.left() == []


@pytest.mark.requirement("M50")
def test_a_hub_that_goes_away_while_one_edits_costs_no_text(editing: Editing) -> None:
    done = editing.edit(SAVES + f"os.unlink({str(editing.home / 'run' / 'hub.sock')!r})\n")
    assert done.code == "unavailable"
    assert Path(str(done.details["file"])).read_bytes() == AFTER


def test_an_editor_that_does_not_exist_is_refused(home: Path, hub: FakeHub) -> None:
    amux = Command(home, VISUAL="/nowhere/editor", AMUX_NO_AUTOSTART="1")
    done = amux.run("memory", "edit", "a.md")
    assert done.details["argument"] == "EDITOR"
    assert list(home.parent.glob("amux-edit-*")) == []
    assert hub.names() == ["get"]


def test_a_bad_path_is_refused_before_anything_is_opened(home: Path, hub: FakeHub) -> None:
    hub.answers["get"] = InvalidArgument("no")
    amux = Command(home, VISUAL="false", AMUX_NO_AUTOSTART="1")
    assert amux.run("memory", "edit", "../x.md").code == "invalid_argument"
    assert list(home.parent.glob("amux-edit-*")) == []
