"""The sample set: notes as people keep them, and questions with the note that answers each."""

import json
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).resolve().parent.parent / "samples"


class Question(NamedTuple):
    """A question as an agent would ask it, and the path of the note that answers it."""

    text: str
    path: str

    @property
    def is_chinese(self) -> bool:
        """Tell whether it is written in Chinese, without blanks."""
        return " " not in self.text and any("\u4e00" <= c <= "\u9fff" for c in self.text)


def notes() -> dict[str, str]:
    """Read the notes: logical path -> text."""
    root = _HERE / "notes"
    return {
        str(file.relative_to(root)): file.read_text(encoding="utf-8")
        for file in sorted(root.rglob("*.md"))
    }


def questions() -> list[Question]:
    """Read the questions."""
    rows = json.loads((_HERE / "questions.json").read_text(encoding="utf-8"))
    return [Question(row["question"], row["path"]) for row in rows]
