"""A link from a document to a file of the active root (J66, the pure part; J19's path argument).

Rule 1: a target is a relative path that stays inside the root; whether it is there is the disk's.
Rule 2: what is written is relative to the document, so that it works in any viewer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_LABEL_CHARS = 200
MAX_PURPOSE_CHARS = 300
MAX_PATH_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Link:
    """What a document points to."""

    label: str
    target: str  # in the active root
    purpose: str | None = None

    def render(self, document: str) -> str:
        """Write the link as it stands in this document of the active root."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Mention:
    """A link that stands in free text."""

    href: str
    line: int


def is_safe_path(text: str) -> bool:
    """Tell whether a path argument is relative and stays inside its root (J19)."""
    raise NotImplementedError


def unique(links: Iterable[Link]) -> tuple[Link, ...]:
    """Keep the first link of each target."""
    raise NotImplementedError


def mentions(text: str) -> tuple[Mention, ...]:
    """Find the Markdown links of free text, code left out."""
    raise NotImplementedError


def resolve(document: str, href: str) -> str | None:
    """Give the path in the active root that an href of a document names; None: not relative."""
    raise NotImplementedError
