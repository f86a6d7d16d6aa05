"""A link from a document to a file of the active root (J66, the pure part; J19's path argument).

Rule 1: a target is a relative path that stays inside the root; whether it is there is the disk's.
Rule 2: what is written is relative to the document, so that it works in any viewer.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from amux.core.value import Value

MAX_LABEL_CHARS = 200
MAX_PURPOSE_CHARS = 300

_NEEDS_BRACKETS = re.compile(r"[\s()<>]")
# Labels are bounded: of a text full of brackets each would else be tried to its end.
_MENTION = re.compile(
    r"\[(?:[^\[\]\\]|\\.){0,200}\]\([ \t]*(<[^<>]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)"
    r"(?:[ \t]+\"[^\"]*\")?[ \t]*\)"
)
_CODE = re.compile(r"`+[^`]*`+")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Link(Value, kw_only=False):
    """What a document points to."""

    label: str
    target: str  # in the active root
    purpose: str | None = None

    def render(self, document: str) -> str:
        """Write the link as it stands in this document of the active root."""
        label = re.sub(r"([\[\]])", r"\\\1", self.label)
        href = relative(document, self.target)
        if _NEEDS_BRACKETS.search(href):
            href = re.sub(r"([<>])", r"\\\1", href)
            href = f"<{href}>"
        return f"[{label}]({href})" + (f" — {self.purpose}" if self.purpose else "")


class Mention(Value, kw_only=False):
    """A link that stands in free text."""

    href: str
    line: int


def relative(document: str, target: str) -> str:
    """Spell the way from a document to a target, both paths in the active root."""
    here, there = document.split("/")[:-1], target.split("/")
    shared = 0
    for ours, theirs in zip(here, there[:-1], strict=False):
        if ours != theirs:
            break
        shared += 1
    return "/".join([".."] * (len(here) - shared) + there[shared:])


def resolve(document: str, href: str) -> str | None:
    """Give the path in the active root that an href of a document names; None: not relative."""
    path = unquote(re.split("[#?]", href, maxsplit=1)[0])
    if path.startswith("/") or _SCHEME.match(path):
        return None
    parts = document.split("/")[:-1]
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def unique(links: Iterable[Link]) -> tuple[Link, ...]:
    """Keep the first link of each target."""
    first: dict[str, Link] = {}
    for link in links:
        first.setdefault(link.target, link)
    return tuple(first.values())


def mentions(text: str) -> tuple[Mention, ...]:
    """Find the links to files in free text: no web addresses, no anchors, nothing in code."""
    found = []
    fence = ""
    for number, line in enumerate(text.split("\n"), start=1):
        mark = _FENCE.match(line)
        if mark:
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
            continue
        if fence or "](" not in line:
            continue
        for link in _MENTION.finditer(_CODE.sub("", line)):
            href = link[1].removeprefix("<").removesuffix(">")
            web = _SCHEME.match(href) and not href.lower().startswith("file:")
            if href and not href.startswith(("#", "//")) and not web:
                found.append(Mention(href, number))
    return tuple(found)
