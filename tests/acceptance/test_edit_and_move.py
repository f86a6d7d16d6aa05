"""`edit` and `move` on a real Hub: row 22. No text is ever lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.faces import ABSENT, Faces, Said
from tests.support.faulty_disk import FaultyDisk

TEXT = "worth keeping\n"
KILLS_MS = [*range(30, 270, 20), 30_000]  # the last one is not killed


def editor(folder: Path, *lines: str) -> dict[str, str]:
    script = folder / "editor.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o700)
    return {"VISUAL": str(script), "TMPDIR": str(folder)}


def edit(faces: Faces, environment: dict[str, str]) -> Said:
    done = faces.hub.cli("memory", "edit", "notes/a.md", **environment)
    line = done.stderr.splitlines()[-1] if done.returncode else done.stdout
    return Said("cli", line.decode("utf-8"), is_refusal=done.returncode != 0)


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.glob("amux-edit-*/*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.requirement("row-22", "M50")
def test_an_editor_that_saves_leaves_or_fails_does_what_a_person_expects(
    faces: Faces, tmp_path: Path
) -> None:
    made = faces.rpc.upsert("notes/a.md", TEXT).revision
    left = edit(faces, editor(tmp_path, "exit 0"))
    assert left.answer == {"path": "notes/a.md", "revision": made, "changed": False}
    failed = edit(faces, editor(tmp_path, "exit 3"))
    assert failed.code == "invalid_argument"
    assert leftovers(tmp_path) == []
    saved = edit(faces, editor(tmp_path, 'printf "more\\n" >> "$1"'))
    assert saved.answer["changed"] is True
    assert faces.mcp.get("notes/a.md").answer["content"] == TEXT + "more\n"
    assert leftovers(tmp_path) == []
    lost = edit(faces, editor(tmp_path, 'printf "half done" > "$1"; exit 3'))
    kept = Path(lost.details["file"])
    assert kept.read_text() == "half done"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert faces.rpc.get("notes/a.md").revision == saved.revision


@pytest.mark.slow
@pytest.mark.requirement("row-22", "M50", "M9")
@pytest.mark.parametrize("way", ["changed", "removed"])
def test_a_document_that_changes_while_it_is_edited_is_a_conflict_and_both_texts_are_there(
    faces: Faces, tmp_path: Path, way: str
) -> None:
    faces.rpc.upsert("notes/a.md", TEXT).answer  # noqa: B018
    stored = faces.hub.memory_dir / "notes" / "a.md"
    other = f'printf "by another" > "{stored}"' if way == "changed" else f'rm "{stored}"'
    said = edit(faces, editor(tmp_path, 'printf "mine" > "$1"', other))
    assert said.code == "revision_conflict"
    assert said.details["observed"] == faces.rpc.get("notes/a.md").revision
    assert Path(said.details["file"]).read_text() == "mine"
    assert faces.rpc.get("notes/a.md").answer["content"] == (
        "by another" if way == "changed" else ""
    )


def move(faces: Faces, revision: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "amux", "memory", "move", "old/a.md", "new/b.md",
         "--expected-revision", revision],
        env=faces.hub.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("row-22", "M51")
def test_a_move_onto_a_taken_path_changes_neither(faces: Faces) -> None:
    old = faces.rpc.upsert("old/a.md", TEXT).revision
    new = faces.rpc.upsert("new/b.md", "taken").revision
    _, err = move(faces, old).communicate(timeout=30)
    error = json.loads(err.splitlines()[-1])["error"]
    assert error["code"] == "revision_conflict"
    assert error["details"]["documents"] == {"old/a.md": old, "new/b.md": new}
    assert faces.rpc.get("old/a.md").answer["content"] == TEXT
    assert faces.rpc.get("new/b.md").answer["content"] == "taken"


@pytest.mark.slow
@pytest.mark.requirement("row-22", "M51", "M9")
def test_a_document_that_changes_while_it_is_moved_stays_where_it_is(
    faulty: Faces, disk: FaultyDisk
) -> None:
    old = faulty.rpc.upsert("old/a.md", TEXT).revision
    with disk.doing("hold-file"):
        moving = move(faulty, old)
        disk.await_event("held")
        faulty.put("old/a.md", b"corrected by hand")
    _, err = moving.communicate(timeout=30)
    error = json.loads(err.splitlines()[-1])["error"]
    observed = faulty.rpc.get("old/a.md")
    assert error["code"] == "revision_conflict"
    assert error["details"]["observed"] == observed.revision
    assert observed.answer["content"] == "corrected by hand"
    assert faulty.rpc.get("new/b.md").revision == ABSENT
    assert not (faulty.hub.memory_dir / "new").exists()


@pytest.mark.slow
@pytest.mark.requirement("row-22", "M51", "M23")
def test_a_move_that_is_killed_whenever_leaves_the_text_at_one_place_at_least(
    faulty: Faces, disk: FaultyDisk
) -> None:
    seen = set()
    old = faulty.rpc.upsert("old/a.md", TEXT).revision
    disk.set("delay 0.02")
    for milliseconds in KILLS_MS:
        moving = move(faulty, old)
        try:
            moving.communicate(timeout=milliseconds / 1000)
        except subprocess.TimeoutExpired:
            moving.kill()
            moving.communicate()
        # What the Hub was told before the kill it may still be doing: read what is durable.
        states = tuple(faulty.rpc.get(path).answer["content"] for path in ("old/a.md", "new/b.md"))
        assert TEXT in states
        assert set(states) <= {TEXT, ""}
        seen.add(states)
        disk_says = settle(faulty, old)
        assert disk_says == old
    assert (TEXT, "") in seen  # killed before anything, and ...
    assert ("", TEXT) in seen  # ... not before the end


def settle(faces: Faces, old: str) -> str:
    """Put the text back to where it began."""
    new = faces.rpc.get("new/b.md").revision
    if new != ABSENT:
        faces.rpc.forget("new/b.md", new).answer  # noqa: B018
    found = faces.rpc.get("old/a.md").revision
    return old if found == old else faces.rpc.upsert("old/a.md", TEXT, found).revision
