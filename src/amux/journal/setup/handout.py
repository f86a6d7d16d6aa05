"""The ring around what agents are handed: files read, decided on, written, and recorded (J21).

Rule 1: the way to each file is walked without a link; what is a link or another user's stays.
Rule 2: a file is replaced only if it is still what was read; the person's mode and owner stay.
Rule 3: each file is whole at any moment. The record is written last; where a kill came before
        it, what was written counts as a person's.
"""

from collections.abc import Iterable
from contextlib import suppress

from amux.disk import atomic, commit, regular
from amux.disk.ground import Ground
from amux.disk.regular import Found
from amux.errors import AmuxError
from amux.journal.setup import rules
from amux.journal.setup.rules import RECORD, Decision, Entry, Record, Rule
from amux.journal.store import trouble

FILE_MAX_BYTES = 1024 * 1024  # a file of settings has a thousandth of this


class Handed:
    """What was done to files in the base, or would be; paths from there."""

    __slots__ = ("changed", "created", "left", "removed", "unchanged", "warnings")

    def __init__(self) -> None:
        self.created: list[str] = []
        self.changed: list[str] = []
        self.unchanged: list[str] = []
        self.removed: list[str] = []
        self.left: list[str] = []
        self.warnings: list[dict[str, object]] = []

    def note(self, path: str, outcome: str) -> None:
        """Note what became of one path."""
        places = {
            "created": self.created,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "left": self.left,
        }
        places[outcome].append(path)

    def add(self, other: "Handed") -> None:
        """Add what was done elsewhere."""
        for name in ("created", "changed", "unchanged", "removed", "left", "warnings"):
            getattr(self, name).extend(getattr(other, name))

    def warn(self, code: str, **more: str) -> None:
        """Add a warning."""
        self.warnings.append({"code": code, **{key: one for key, one in more.items() if one}})


def hand_out(base: str, flags: Iterable[str], uid: int, told: Handed, *, is_dry: bool) -> None:
    """Hand these agents what they need; what a person changed stays."""
    ground = _base(base, uid)
    with ground:
        old = record(ground)
        entries, folders = dict(old.entries), set(old.folders)
        for rule in rules.rules_of(flags):
            found, decision = _decide(ground, rule, old.entries.get(rule.path))
            _tell(decision, told)
            if decision.entry is not None:
                entries[rule.path] = decision.entry
            if decision.data is None or decision.outcome not in ("created", "changed"):
                continue
            missing = [one for one in rules.folders_of(rule.path) if not _is_there(ground, one)]
            folders.update(missing)
            if not is_dry:
                _sweep(ground, rule.path)
                put(ground, rule.path, decision.data, found)
        _keep(ground, Record(entries, tuple(folders)), told, is_dry=is_dry)


def take_back(base: str, flags: Iterable[str], uid: int, told: Handed, *, is_dry: bool) -> None:
    """Take out what was handed to these agents and still is as it was written."""
    ground = _base(base, uid)
    with ground:
        old = record(ground)
        entries, folders = dict(old.entries), set(old.folders)
        for rule in _no_longer_needed(flags, old):
            known = entries.pop(rule.path, None)
            if known is None:
                continue
            try:
                found = read(ground, rule.path)
                decision = rules.take_back(rule, found.data if found else None, known)
            except AmuxError:
                found, decision = None, rules.refused(rule)
            if decision.outcome != "unchanged":
                _tell(decision, told)
            if decision.outcome == "removed" and not is_dry:
                _take(ground, rule.path, decision.data, found)
                _take_folders(ground, rule.path, folders)
        _keep(ground, Record(entries, tuple(folders)), told, is_dry=is_dry)


def record(ground: Ground) -> Record:
    """Read what was handed out."""
    found = read(ground, RECORD)
    return Record.parse(found.data if found else None)


def read(ground: Ground, path: str) -> Found | None:
    """Read a file below the base; refuses links and what is no regular file of sane size."""
    place, _, name = path.rpartition("/")
    with trouble.told(path):
        folder = ground.open_folder(place)
        if folder is None:
            return None
        with folder:
            return regular.read(folder, name, max_bytes=FILE_MAX_BYTES)


def put(ground: Ground, path: str, data: bytes, seen: Found | None) -> None:
    """Put a file whole, unless it is no longer what was seen."""
    place, _, name = path.rpartition("/")
    owner = (ground.owner, ground.gid) if ground.uid == 0 else None
    with trouble.told(path), ground.make_folder(place) as folder:
        temporary = commit.stage(folder, name, data, like=seen.facts if seen else None, owner=owner)
        try:
            if seen is None:
                commit.put_new(folder, temporary, name)
            else:
                _require_same(regular.facts(folder, name), seen)
                commit.put_over(folder, temporary, name)
        except FileExistsError as error:
            commit.discard(folder, temporary)
            raise trouble.conflict(path) from error
        except BaseException:
            commit.discard(folder, temporary)
            raise
        commit.flush(folder)


def _sweep(ground: Ground, path: str) -> None:
    """Remove what an init that was killed left beside a file; the workspace's lock is held."""
    place, _, name = path.rpartition("/")
    with trouble.told(path):
        folder = ground.open_folder(place)
        if folder is not None:
            with folder:
                commit.sweep(folder, name)


def _require_same(now: object, seen: Found) -> None:
    if now != seen.facts:
        raise FileExistsError


def _base(base: str, uid: int) -> Ground:
    with trouble.told("."):
        ground = Ground.open(base, (), uid=uid)
    if ground is None:
        raise trouble.of(FileNotFoundError(), ".")
    return ground


def _decide(ground: Ground, rule: Rule, known: Entry | None) -> tuple[Found | None, Decision]:
    try:
        found = read(ground, rule.path)
    except AmuxError:
        return None, rules.refused(rule)
    return found, rules.hand_out(rule, found.data if found else None, known)


def _tell(decision: Decision, told: Handed) -> None:
    told.note(decision.path, decision.outcome)
    if decision.warning:
        told.warn(decision.warning, path=decision.path, text=decision.text)


def _no_longer_needed(flags: Iterable[str], old: Record) -> tuple[Rule, ...]:
    """Give what these agents were handed, but what another one that was handed an entry uses."""
    asked = set(flags)
    needed = {
        rule.path
        for flag in rules.FLAGS
        if flag not in asked
        and any(one.kind != "file" and one.path in old.entries for one in rules.HANDED[flag])
        for rule in rules.HANDED[flag]
    }
    return tuple(rule for rule in rules.rules_of(sorted(asked)) if rule.path not in needed)


def _keep(ground: Ground, new: Record, told: Handed, *, is_dry: bool) -> None:
    """Write the record if it says something new; remove one that says nothing any more."""
    found = read(ground, RECORD)
    data = new.render()
    if data == (found.data if found else None):
        return
    if data is None:
        told.note(RECORD, "removed")
    else:
        told.note(RECORD, "changed" if found else "created")
    if is_dry:
        return
    if data is None:
        _take(ground, RECORD, None, found)
    else:
        put(ground, RECORD, data, found)


def _take(ground: Ground, path: str, rest: bytes | None, seen: Found | None) -> None:
    """Write what is left of a file, or remove the file."""
    if rest is not None:
        put(ground, path, rest, seen)
        return
    place, _, name = path.rpartition("/")
    with trouble.told(path):
        folder = ground.open_folder(place)
        if folder is None:
            return
        with folder:
            if seen is not None and regular.facts(folder, name) == seen.facts:
                commit.remove(folder, name)


def _take_folders(ground: Ground, path: str, folders: set[str]) -> None:
    """Remove the directories that were made for a file, once they are empty."""
    for one in reversed(rules.folders_of(path)):
        if one not in folders:
            continue
        place, _, name = one.rpartition("/")
        with trouble.told(one):
            above = ground.open_folder(place)
        if above is None:
            continue
        with above, suppress(OSError):  # a person put something there: it stays
            atomic.remove_folder(above, name)
            folders.discard(one)


def _is_there(ground: Ground, path: str) -> bool:
    folder = ground.open_folder(path)
    if folder is None:
        return False
    folder.close()
    return True
