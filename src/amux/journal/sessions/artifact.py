"""Artifacts that a write points to: links whose targets are there (J66), and what they hold (J69).

Rule 1: a target is a regular file of the active root, reached through no link.
Rule 2: links in free text are somebody's words: what is wrong with them is only remarked.
"""

from collections.abc import Iterable, Mapping

from amux.core import canonical
from amux.disk import commit, regular
from amux.disk.ground import BlockedError, Ground
from amux.errors import AmuxError
from amux.journal import relative
from amux.journal.refusals import refuse
from amux.journal.remark import Remark
from amux.journal.store import trouble
from amux.journal.text import link
from amux.journal.text.link import Link

MAX_HASHED_BYTES = 64 * 1024 * 1024  # as for the targets of an operation (T58)


def links(given: object, argument: str) -> tuple[Link, ...]:
    """Read link arguments, one object or several; of two to one target the first stays."""
    found = []
    for one in given if isinstance(given, list) else [given] if given else []:
        if not isinstance(one, Mapping):
            continue
        target, purpose = str(one["targetPath"]), one.get("purpose")
        if relative.problem(target) is not None:
            raise _unfit("PATH_INVALID", "the path of a link is not a plain relative one", argument)
        text = purpose if isinstance(purpose, str) else None
        found.append(Link(str(one["label"]), target, text))
    return link.unique(found)


def require_targets(ground: Ground | None, found: Iterable[Link], argument: str) -> None:
    """Require that each link points to a regular file of the active root."""
    for one in found:
        kind = _kind(ground, one.target, argument)
        if kind is None:
            raise _unfit("TARGET_MISSING", "the target of a link is not there", argument)
        if kind == "link":
            raise _unfit("REPARSE_REJECTED", "the target of a link is a link itself", argument)
        if kind != "file":
            raise _unfit("TARGET_INVALID", "the target of a link is no regular file", argument)


def _kind(ground: Ground | None, target: str, argument: str) -> str | None:
    """Tell what stands at a target; None for nothing."""
    place, _, name = target.rpartition("/")
    try:
        folder = ground.open_folder(place) if ground else None
        if folder is None:
            return None
        with folder:
            seen = folder.look(name)
    except BlockedError as error:
        raise _unfit("REPARSE_REJECTED", "the way to a target is a link", argument) from error
    except OSError as error:
        if commit.name_of(error) == "ENAMETOOLONG":  # no such name can be there
            return None
        raise trouble.of(error, target) from error
    return seen.kind if seen else None


def digest(ground: Ground, target: str) -> str:
    """Name the bytes of a target."""
    place, _, name = target.rpartition("/")
    with trouble.told(target):
        folder = ground.open_folder(place)
        found = None
        if folder is not None:
            with folder:
                found = regular.read(folder, name, max_bytes=MAX_HASHED_BYTES)
    if found is None:
        raise _unfit("TARGET_MISSING", "the target of a link is not there", "artifacts")
    return canonical.digest(found.data)


def remarks(ground: Ground | None, document: str, text: str) -> list[Remark]:
    """Remark the links of free text that lead nowhere, or not from the document."""
    found = []
    for mention in link.mentions(text):
        target = link.resolve(document, mention.href)
        if target is None:
            found.append(Remark("link-not-relative", mention.line))
        elif not _is_there(ground, target):
            found.append(Remark("link-target-missing", mention.line))
    return found


def _is_there(ground: Ground | None, target: str) -> bool:
    place, _, name = target.rpartition("/")
    try:
        folder = ground.open_folder(place) if ground else None
        if folder is None:
            return False
        with folder:
            return not name or folder.look(name) is not None
    except (OSError, ValueError):  # a name that no file system takes, such as one with U+0000
        return False


def _unfit(kind: str, message: str, argument: str) -> AmuxError:
    return refuse(
        f"ARTIFACT_LINK_{kind}",
        message,
        hint="give targetPath as the path of a file below the active root",
        argument=argument,
    )
