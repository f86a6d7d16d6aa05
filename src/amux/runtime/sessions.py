"""The sessions of one AMUX_HOME: their records, their timelines, and what their runs need.

Rule 1: a record is written before the agent starts (R4).
Rule 2: a directory holds a record or is none of ours: one without is not listed.
Rule 3: one run of a session at a time: it holds the session's lock.
Rule 4: what only a live run needs, its credential above all, is removed when it ends, and after a
        crash by whoever starts a session next.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from amux.core import home, timeline
from amux.core.late import Late
from amux.core.text import to_json
from amux.core.timeline import Event, Logged
from amux.core.value import Value
from amux.disk import atomic, named
from amux.disk.lock import Holder
from amux.disk.tree import Root
from amux.errors import AmuxError, Busy, InvalidArgument, NotFound, NotSaved
from amux.runtime import record as records
from amux.runtime.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amux.runtime import rundir
else:
    rundir = Late("amux.runtime.rundir")

RECORD_MAX_BYTES = 256 * 1024  # the protocol has 1,700, and a thousand native ids 40,000
TIMELINE_MAX_BYTES = 64 * 1024 * 1024
PREFIX_MIN_CHARACTERS = 4  # of an id that is given short


class Unreadable(Value):
    """A record that cannot be used, and why."""

    session: str
    refusal: AmuxError


class Sessions:
    """The sessions of one AMUX_HOME."""

    def __init__(self, root: Root, path: str) -> None:
        self._root = root
        self._path = path

    @classmethod
    def create(cls, path: str) -> "Sessions":
        """Open those of an AMUX_HOME, which is made if it is missing."""
        try:
            return cls(Root.create(path), path)
        except OSError as error:
            raise _not_saved(error) from error

    @classmethod
    def open(cls, path: str) -> "Sessions | None":
        """Open those of an AMUX_HOME; None where there is none."""
        try:
            return cls(Root.open(path), path)
        except FileNotFoundError:
            return None

    def directory(self, session: str) -> str:
        """Name a session's directory, absolutely."""
        return named.join(self._path, home.SESSIONS_DIR, session)

    def files_directory(self, session: str) -> str:
        """Name the directory of a run's files, absolutely."""
        return named.join(self.directory(session), home.FILES_DIR)

    def credential_file(self, session: str) -> str:
        """Name the file that holds a run's credential, absolutely."""
        return named.join(self.directory(session), home.CREDENTIAL_FILE)

    # --- records ---

    def ids(self) -> list[str]:
        """Name all sessions, the newest last as far as their ids tell: in no promised order."""
        folder = self._root.folder(home.SESSIONS_DIR)
        if folder is None:
            return []
        with folder:
            return sorted(name for name in folder.names() if records.is_id(name))

    def read(self, session: str) -> Record:
        """Read a record; refuses one that was cut, edited, or written by a newer amux."""
        data = None
        if records.is_id(session):
            path = f"{home.SESSIONS_DIR}/{session}/{home.SESSION_FILE}"
            data = self._root.read(path, max_bytes=RECORD_MAX_BYTES)
        if data is None:
            raise NotFound("there is no such session", hint="see `amux session list`")
        record = records.parse(data)
        if record.start.session != session:
            raise records.corrupt("it is the record of another session")
        return record

    def known(self) -> Iterator[Record | Unreadable]:
        """Give every record, and what stands in the way of those that cannot be read."""
        for session in self.ids():
            try:
                yield self.read(session)
            except NotFound:
                continue  # not begun, or just removed
            except AmuxError as refusal:
                yield Unreadable(session=session, refusal=refusal)

    def find(self, text: str) -> str:
        """Find a session by its id, the beginning of it, or its name; refuses to guess."""
        ids = self.ids()
        if text in ids:
            return text
        found = [one for one in ids if len(text) >= PREFIX_MIN_CHARACTERS and one.startswith(text)]
        if not found:
            found = [
                record.start.session
                for record in self.known()
                if isinstance(record, Record) and record.start.name == text and text
            ]
        if len(found) > 1:
            raise InvalidArgument(
                "more than one session is called so",
                hint="give the id of one",
                argument="session",
                candidates=found[:20],
            )
        if not found:
            raise NotFound("there is no such session", hint="see `amux session list`")
        return found[0]

    def write(self, record: Record) -> None:
        """Keep a record, durably."""
        session = record.start.session
        try:
            self._make(home.SESSIONS_DIR)
            self._make(f"{home.SESSIONS_DIR}/{session}")
            self._put(session, home.SESSION_FILE, records.spelled(record))
        except OSError as error:
            raise _not_saved(error) from error

    def remove(self, session: str) -> None:
        """Remove a session's directory; refuses as `busy` while a run of it lives."""
        with self.held(session):
            self.sweep(session)
            for path in named.walk(self.directory(session)):
                named.remove(path)

    # --- runs ---

    @contextmanager
    def held(self, session: str) -> Iterator[None]:
        """Be the one run of a session while the block runs."""
        path = f"{home.SESSIONS_DIR}/{session}/{home.SESSION_LOCK_FILE}"
        try:
            lock = Holder.take(self._root, path, {"pid": named.own_pid()})
        except Busy as refusal:
            raise Busy(
                "a run of this session lives", hint="end it first", **refusal.details
            ) from refusal
        except FileNotFoundError as error:
            raise NotFound("there is no such session", hint="see `amux session list`") from error
        try:
            yield
        finally:
            # What was not swept is swept by whoever finds the lock's file without a holder.
            if not self._is_unswept(session):
                named.remove(named.join(self._path, path))
            lock.release()

    def put_credential(self, session: str, text: str) -> None:
        """Write a run's credential, for its owner alone."""
        self._put(session, home.CREDENTIAL_FILE, text.encode("ascii") + b"\n")

    def put_files(self, session: str, files: Mapping[str, str]) -> None:
        """Make the files of a run, for its owner alone."""
        directory = self.files_directory(session)
        place = f"{home.SESSIONS_DIR}/{session}/{home.FILES_DIR}"
        if files:
            self._make(place)
        for path, text in files.items():
            name = path.removeprefix(directory + "/")
            atomic.replace(self._root, f"{place}/{name}", text.encode("utf-8", "surrogateescape"))

    def note_elsewhere(self, session: str, found: Mapping[str, object]) -> None:
        """Note what a run is about to make outside of AMUX_HOME, for whoever sweeps it."""
        self._put(session, home.ELSEWHERE_FILE, to_json(dict(found)) + b"\n")

    def made_elsewhere(self) -> list[str]:
        """Name the directories that runs have, or left, outside of AMUX_HOME."""
        found = []
        for session in self.ids():
            base = self._elsewhere(session).get("base")
            found += [named.join(str(base), session)] if base else []
        return [path for path in found if named.exists(path)]

    def sweep(self, session: str) -> None:
        """Remove what only a live run needs, and end what still lives of one that was noted."""
        note = self._elsewhere(session)
        if not note or rundir.tidy(session, note, self.copies_in_use(session)):
            named.remove(named.join(self.directory(session), home.ELSEWHERE_FILE))
        named.remove(self.credential_file(session))
        for path in named.walk(self.files_directory(session)):
            named.remove(path)

    def copies_in_use(self, session: str) -> frozenset[str]:
        """Name the copied logins that other runs live on."""
        found: set[str] = set()
        for other in self.ids():
            folder = named.join(self._path, home.SESSIONS_DIR, other)
            if other != session and named.is_locked(named.join(folder, home.SESSION_LOCK_FILE)):
                found.update(rundir.copies_of(self._elsewhere(other)))
        return frozenset(found)

    def _elsewhere(self, session: str) -> Mapping[str, object]:
        path = f"{home.SESSIONS_DIR}/{session}/{home.ELSEWHERE_FILE}"
        return rundir.parse(self._root.read(path, max_bytes=RECORD_MAX_BYTES) or b"")

    def _is_unswept(self, session: str) -> bool:
        names = (home.CREDENTIAL_FILE, home.FILES_DIR, home.ELSEWHERE_FILE)
        return any(named.exists(named.join(self.directory(session), one)) for one in names)

    def sweep_dead(self) -> list[str]:
        """Remove what runs left behind that were killed: those whose lock nobody holds.

        Names them: their credentials may live.
        """
        swept = []
        for session in self.ids():
            if named.exists(named.join(self.directory(session), home.SESSION_LOCK_FILE)):
                with suppress(Busy, NotFound, OSError), self.held(session):
                    swept += [session] if self._is_unswept(session) else []
                    self.sweep(session)
        return swept

    # --- the timeline ---

    def log(self, session: str, event: Event, *, at: str, run: int) -> None:
        """Add an event to a session's timeline; a full disk costs the event, never the run."""
        path = f"{home.SESSIONS_DIR}/{session}/{home.TIMELINE_FILE}"
        try:
            atomic.append(self._root, path, timeline.line(event, at=at, run=run), durable=False)
        except OSError:
            return

    def timeline(self, session: str) -> list[Logged]:
        """Read a session's timeline; lines that cannot be read are passed over."""
        path = f"{home.SESSIONS_DIR}/{session}/{home.TIMELINE_FILE}"
        data = self._root.read(path, max_bytes=TIMELINE_MAX_BYTES) or b""
        found = (timeline.parse(line) for line in data.splitlines())
        return [logged for logged in found if logged is not None]

    def _make(self, path: str) -> None:
        place, _, name = path.rpartition("/")
        folder = self._root.folder(place)
        if folder is None:
            raise FileNotFoundError(place)
        with folder:
            try:
                atomic.make_folder(folder, name)
            except FileExistsError:
                return
            atomic.fsync(folder.fd)

    def _put(self, session: str, name: str, data: bytes) -> None:
        atomic.replace(self._root, f"{home.SESSIONS_DIR}/{session}/{name}", data)


def new_id(random_bytes: Callable[[int], bytes]) -> str:
    """Make the id of a new session."""
    return "s-" + random_bytes(6).hex()


def _not_saved(error: OSError) -> NotSaved:
    return NotSaved(
        "the session's record could not be saved",
        hint="see that AMUX_HOME can be written",
        cause=type(error).__name__,
    )
