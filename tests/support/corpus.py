"""A full scope of notes, half English, half Chinese: the same bytes on every machine.

Words come from the sample notes and from Python's own topics (`pydoc_data`), sentences from a
seeded generator. Names that are planted tell a benchmark how often a term occurs.
"""

import random
import re
from pydoc_data.topics import topics

from tests.support.samples import notes

DOCUMENTS = 1024
MIB = 1024 * 1024
_CHINESE_SHARE = 0.4
_MARKS = "，，，，、、：；！？（）“”《》"
_FOLDERS = (
    "projects/amux", "projects/hub", "projects/relay", "projects/web", "projects/infra",
    "projects/data", "preferences", "people", "lessons", "decisions",
)  # fmt: skip
_STEMS = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉"


def rare(number: int) -> tuple[str, str]:
    """Name the terms that are planted in three documents each, an English and a Chinese one."""
    return f"QuorumLease{number:02d}", f"鹦鹉螺{_STEMS[number]}"


RARE = 20


def full_scope(mib: int, *, documents: int = DOCUMENTS, seed: int = 7) -> dict[str, bytes]:
    """Make a scope of `mib` MiB, a little under, in documents of at most 64 KiB."""
    chance = random.Random(seed)
    words, phrases = _english(), _chinese(chance)
    weights = [chance.lognormvariate(0, 0.7) for _ in range(documents)]
    unit = mib * MIB - 192 * documents  # lines end where they end
    unit /= sum(weights)
    planted: dict[int, list[str]] = {}
    for number in range(RARE):
        for index in chance.sample(range(1, documents), min(3, documents - 1)):
            planted.setdefault(index, []).append("Note {} 与 {} 有关".format(*rare(number)))
    scope: dict[str, bytes] = {}
    surplus = 0.0  # what the largest may not hold goes to the others
    for index in sorted(range(documents), key=weights.__getitem__, reverse=True):
        wanted = weights[index] * unit
        size = min(wanted + surplus, 64 * 1024 - 512)
        surplus = wanted + surplus - size
        folder, word = _FOLDERS[index % len(_FOLDERS)], words[index * 7 % len(words)]
        path = f"{folder}/{word.lower()}-{index:04d}.md"
        lines = _lines(chance, words, phrases, int(size))
        for line in planted.get(index, []):
            lines.insert(chance.randrange(2, max(3, len(lines))), line)
        text = f"# {path.rpartition('/')[2][:-3]}\n\n" + "\n".join(lines)
        data = text.encode("utf-8")[: 64 * 1024 - 1].decode("utf-8", errors="ignore") + "\n"
        scope[path] = data.encode("utf-8")
    return dict(sorted(scope.items()))


def _english() -> list[str]:
    text = "\n".join(topics[name] for name in sorted(topics)) + "\n".join(notes().values())
    return re.findall(r"[A-Za-z][A-Za-z_0-9-]{1,24}", text)


def _chinese(chance: random.Random) -> list[str]:
    phrases = []
    for run in re.findall(r"[\u4e00-\u9fff]+", "\n".join(notes().values())):
        at = 0
        while at < len(run):
            length = chance.choice((1, 2, 2, 2, 3, 4))
            phrases.append(run[at : at + length])
            at += length
    return phrases


def _lines(chance: random.Random, words: list[str], phrases: list[str], size: int) -> list[str]:
    lines: list[str] = []
    while size > 0:
        kind = chance.random()
        if kind < 0.06:
            line = "\n## " + " ".join(chance.choices(words, k=3)) + "\n"
        elif kind < 0.10:
            call = chance.choices(words, k=3)
            line = f"```python\n{call[0]} = {call[1]}({call[2]}, {chance.randrange(9999)})\n```"
        else:
            line = " ".join(
                _han(chance, phrases) if chance.random() < _CHINESE_SHARE else _latin(chance, words)
                for _ in range(chance.randint(1, 3))
            )
        lines.append(line)
        size -= len(line.encode("utf-8")) + 1
    return lines


def _latin(chance: random.Random, words: list[str]) -> str:
    return " ".join(chance.choices(words, k=chance.randint(6, 16))).capitalize() + "."


def _han(chance: random.Random, phrases: list[str]) -> str:
    parts = chance.choices(phrases, k=chance.randint(8, 20))
    for _ in range(len(parts) // 6):
        parts.insert(chance.randrange(1, len(parts)), chance.choice(_MARKS))
    return "".join(parts) + "。"
