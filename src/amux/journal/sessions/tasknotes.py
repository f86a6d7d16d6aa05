"""The notes of a task, `sessions.md`, as an edit: a session's text at its end (T27).

Rule 1: the heading names the section, so that a reader of the task finds the session.
Rule 2: a call that is sent again finds its own entry, also when others wrote after it.
"""

from amux.journal.call.errand import Errand
from amux.journal.sessions.scribe import Receipt, Scribe
from amux.journal.sessions.sessiontext import Text
from amux.journal.sessions.taskpart import TaskNotes
from amux.journal.store.files import Edit, Edited
from amux.journal.text.insertion import close, insert


def add_notes(errand: Errand, scribe: Scribe, notes: TaskNotes, text: Text) -> Receipt:
    """Add a call's content to the notes of a task, and tell what was done."""
    entry = _entry(errand, text.date, text.section.id)
    done = scribe.write(notes.path, _edit(entry, is_again=text.is_repeat))
    return {
        "taskId": notes.task_id,
        "path": notes.path,
        "transaction": done.receipt,
        "replayed": done.value,
    }


def check_notes(scribe: Scribe, notes: TaskNotes) -> None:
    """Let the notes refuse before anything is committed."""
    scribe.require_writable(notes.path)


def _entry(errand: Errand, date: str, section: str) -> str:
    content = errand.text("content") or ""
    heading = f"### {date[:4]}-{date[4:6]}-{date[6:]}#{section} — {errand.agent}"
    return f"{heading}\n\n{content.rstrip()}\n"


def _edit(entry: str, *, is_again: bool) -> Edit[bool]:
    def edit(old: bytes | None) -> Edited[bool]:
        data = old or b""
        block = entry.encode("utf-8")
        there = data.replace(b"\r\n", b"\n").rstrip() + b"\n"
        if there.endswith(block) or (is_again and f"\n{entry}\n".encode() in b"\n" + there + b"\n"):
            return Edited(data, value=True)
        closed = close(data)
        return Edited(insert(closed, len(closed), entry).data, value=False)

    return edit
