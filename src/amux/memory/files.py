"""Documents as files: scope -> directory, compare and swap, durable or refused.

Rule 1: what is slow waits outside the lock: the temporary is written and synced before it, the
        directory after it. Under the lock everything is compared again, then renamed.
Rule 2: a refusal before the rename leaves the old document, no temporary and no new directory.
Rule 3: what fails after the rename is `outcome_unknown`. Nothing is written by this process
        any more, because nobody can say what the disk holds.
Rule 4: editors do not ask for our lock. What an exchange of names brings out is looked at, and
        given back if it is not what was compared (M9).
"""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from amux.core import revision
from amux.core.identity import Scope
from amux.core.path import DocPath
from amux.disk import atomic
from amux.disk.lock import Exclusion
from amux.disk.tree import Folder, Root
from amux.disk.watch import Watch
from amux.errors import (
    Busy,
    Corrupt,
    NotFound,
    OutcomeUnknown,
    RevisionConflict,
    Unavailable,
)
from amux.memory import limits
from amux.memory.definite import definite, refusal
from amux.memory.document import Document, Missing, Present, require_content, require_size
from amux.memory.partition import Partition, directory
from amux.memory.pending import Pending, Together
from amux.memory.place import make_folders, parent, prune, require_free, sweep
from amux.memory.store import Broken, Put, Usage, nothing
from amux.memory.swap import AfterRenameError, put_in_place
from amux.memory.view import FilesView, broken, read_document, read_in


class Files:
    """The documents beneath one directory; made by the Hub that holds the root's lock.

    `on_failure` is called once, when a write failed after its rename.
    """

    def __init__(
        self,
        root_path: str,
        *,
        wait_seconds: float = limits.WAIT_MAX_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        on_failure: Callable[[], None] | None = None,
        stepwise: bool = False,
        has_notices: bool = True,
    ) -> None:
        self._root = Root.create(root_path, stepwise=stepwise)
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._on_failure = on_failure
        self._has_notices = has_notices
        self._failed = threading.Event()
        self._syncs = atomic.DirectorySyncs()
        self._making = Exclusion(clock)  # `users` is of all scopes
        self._table = threading.Lock()
        self._partitions: dict[str, Partition] = {}
        sweep(self._root)

    @property
    def is_failed(self) -> bool:
        """Tell whether a write failed after its rename; this process must not go on."""
        return self._failed.is_set()

    def close(self) -> None:
        """Give the kernel's handles back."""
        for partition in self._partitions.values():
            partition.watch.close()
        self._root.close()

    def read(self, scope: Scope, path: DocPath) -> Document:
        """Read what is on disk now; refuses a file that is no document as `corrupt`."""
        data = read_document(self._root, f"{directory(scope)}/{path.text}")
        return Missing() if data is None else Present(data)

    def pending(self, scope: Scope, path: DocPath | None = None) -> Together | None:
        """Give the ticket of what is not yet durable at a path, or in the whole scope."""
        return self._partition(scope).pending.ticket(path.text if path else None)

    def view(self, scope: Scope, *, is_watching: bool = True) -> FilesView:
        """Open a new view of a scope; one that watches nothing keeps nothing open."""
        has_notices = is_watching and self._has_notices
        return FilesView(self._root, directory(scope), has_notices=has_notices)

    def usage(self, scope: Scope) -> Usage:
        """Count what the quota counts."""
        partition = self._partition(scope)
        with partition.lock.held(self._deadline()):
            return partition.usage()

    def put(
        self,
        scope: Scope,
        path: DocPath,
        data: bytes,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> Put:
        """Replace or create a document if its revision on disk is `expected`.

        Returns when the document is durable.
        """
        require_content(data)
        partition = self._partition(scope)
        deadline = self._deadline()
        write = _Write(
            path=path,
            data=data,
            new=revision.of(data),
            expected=expected,
            announced=announced,
            deadline=deadline,
        )
        try:
            while True:
                done = self._try_put(partition, write)
                if done is not None:
                    return done
                # Something changed between check and rename: look again, until the deadline.
                if self._clock() >= deadline:
                    raise Busy("the document keeps changing", hint="retry in a moment")
        except RevisionConflict:
            # What the refusal tells may be renamed, not yet durable: wait for it (M24).
            self._await(partition, path.text, deadline)
            raise

    def remove(
        self,
        scope: Scope,
        path: DocPath,
        expected: str,
        announced: Callable[[], None] = nothing,
    ) -> str:
        """Remove a document at `expected`; answer the revision that was there, or `absent`."""
        partition = self._partition(scope)
        deadline = self._deadline()
        place = parent(f"{partition.top}/{path.text}")
        written = None
        try:
            with definite(), ExitStack() as opened:
                # Looked at before the announcement too, so that who is refused waits for none.
                for is_announced in (False, True):
                    if is_announced:
                        announced()
                    with partition.lock.held(deadline):
                        self._require_working()
                        folder = self._open(opened, place)
                        before = _document(folder, path.name)
                        if folder is None or isinstance(before, Missing):
                            break
                        revision.require(before.revision, expected)
                        if is_announced:
                            written = self._unlink(partition, folder, path.text, path.name)
                if written is None:
                    self._await(partition, path.text, deadline)
                    return revision.ABSENT
                self._settle(partition, *written)
        except RevisionConflict:
            self._await(partition, path.text, deadline)
            raise
        self._prune(partition, place, deadline)
        return expected

    def broken(self, scope: Scope) -> list[Broken]:
        """List the files that are no documents, each with its reason."""
        return [item for _, item in broken(self._root, directory(scope))]

    def discard(self, scope: Scope, path: str) -> None:
        """Remove one file that `broken` lists, by the name that it lists."""
        partition = self._partition(scope)
        deadline = self._deadline()
        with definite(), ExitStack() as opened:
            with partition.lock.held(deadline):
                self._require_working()
                raw = self._listed(partition, path)
                place = parent(f"{partition.top}/{raw}")
                folder = self._open(opened, place)
                if folder is None:
                    raise _not_listed()
                written = self._unlink(partition, folder, raw, raw.rpartition("/")[2])
            self._settle(partition, *written)
        self._prune(partition, place, deadline)

    # --- one attempt to put: admit, stage, commit, settle ---

    def _try_put(self, partition: Partition, write: "_Write") -> Put | None:
        """Put, or answer None where somebody else changed the place meanwhile."""
        place = parent(f"{partition.top}/{write.path.text}")
        with definite(), ExitStack() as opened:
            with partition.lock.held(write.deadline):
                folder = self._open(opened, place)
                before = self._admit(partition, write, folder)
                if write.new != write.expected and folder is None:
                    folder = opened.enter_context(self._make(partition, place, write.deadline))
            if write.new == write.expected or folder is None:
                self._await(partition, write.path.text, write.deadline)
                return Put(write.expected, changed=False)
            try:
                temporary = atomic.stage(folder, write.data)
            except FileNotFoundError:  # a forget found the directory empty and removed it
                return None
            except OSError:
                self._prune(partition, place, write.deadline)
                raise
            try:
                write.announced()
                written = self._commit(partition, write, folder, temporary, before)
            except OutcomeUnknown:
                raise  # what the temporary holds now is not known either
            except BaseException:
                self._drop(partition, write, folder, temporary, place)
                raise
            if written is None:
                self._drop(partition, write, folder, temporary, place)
                return None
            self._settle(partition, *written)
        return Put(write.new, changed=True)

    def _admit(
        self,
        partition: Partition,
        write: "_Write",
        folder: Folder | None,
        known: Document | None = None,
    ) -> Document:
        """Decide, with the lock held, whether the write may be; answer what is there now.

        `known` is what was there at the expected revision: to compare is cheaper than to hash.
        """
        self._require_working()
        before = _document(folder, write.path.name)
        if before != known:
            revision.require(before.revision, write.expected)
        if isinstance(before, Missing):
            write.path.require_creatable()
            require_free(self._root, partition.top, write.path)
        require_size(write.path, write.data)
        partition.require_room(before, write.data)
        return before

    def _commit(
        self,
        partition: Partition,
        write: "_Write",
        folder: Folder,
        temporary: str,
        known: Document,
    ) -> "tuple[Pending, atomic.Mark] | None":
        """Compare everything again and rename; None where the place is not the same any more."""
        path = write.path
        with partition.lock.held(write.deadline), ExitStack() as opened:
            now = self._open(opened, parent(f"{partition.top}/{path.text}"))
            if now is None or not now.is_same(folder):
                return None
            before = self._admit(partition, write, folder, known)
            pending = partition.pending.begin(path.text)
            try:
                is_ours = put_in_place(folder, temporary, path.name, before)
            except OSError:
                partition.pending.end(pending)  # a rename that fails changes nothing
                raise
            except AfterRenameError as error:
                raise self._unknown(partition, pending) from error
            if not is_ours:
                partition.pending.end(pending)
                return None
            return pending, self._syncs.mark(folder)

    def _drop(
        self, partition: Partition, write: "_Write", folder: Folder, temporary: str, place: str
    ) -> None:
        """Take back what an attempt made."""
        atomic.discard(folder, temporary)
        self._prune(partition, place, write.deadline)

    def _unlink(
        self, partition: Partition, folder: Folder, path: str, name: str
    ) -> "tuple[Pending, atomic.Mark]":
        pending = partition.pending.begin(path)
        try:
            atomic.unlink(folder, name)
        except OSError:
            partition.pending.end(pending)
            raise
        return pending, self._syncs.mark(folder)

    def _settle(self, partition: Partition, pending: Pending, mark: atomic.Mark) -> None:
        try:
            self._syncs.settle(mark)
        except OSError as error:
            raise self._unknown(partition, pending) from error
        partition.pending.end(pending)

    # --- what several of them need ---

    def _partition(self, scope: Scope) -> Partition:
        with self._table:
            found = self._partitions.get(scope.name)
            if found is None:
                top = directory(scope)
                watch = Watch(
                    self._root,
                    top,
                    max_entries=limits.SCAN_MAX_ENTRIES,
                    has_notices=self._has_notices,
                )
                found = Partition(top, Exclusion(self._clock), watch)
                self._partitions[scope.name] = found
            return found

    def _deadline(self) -> float:
        return self._clock() + self._wait_seconds

    def _await(self, partition: Partition, path: str, deadline: float) -> None:
        ticket = partition.pending.ticket(path)
        if ticket:
            ticket.wait(deadline, self._clock)

    def _open(self, opened: ExitStack, place: str) -> Folder | None:
        folder = self._root.folder(place)
        return opened.enter_context(folder) if folder else None

    def _make(self, partition: Partition, place: str, deadline: float) -> Folder:
        try:
            if self._root.look(partition.top) is not None:
                return make_folders(self._root, place)
            with self._making.held(deadline):
                return make_folders(self._root, place)
        except atomic.SyncFailedError as error:
            # Whether a later fsync of that directory may be believed, nobody knows.
            self._fail()
            raise refusal(error) from error

    def _prune(self, partition: Partition, place: str, deadline: float) -> None:
        """Remove directories that are empty now; it is no matter if that cannot be."""
        with suppress(Busy, Corrupt), partition.lock.held(deadline):
            prune(self._root, partition.top, place)

    def _listed(self, partition: Partition, path: str) -> str:
        for raw, item in broken(self._root, partition.top):
            if item.path == path:
                return raw
        raise _not_listed()

    def _require_working(self) -> None:
        if self._failed.is_set():
            raise Unavailable(
                "a write failed after its rename", hint="the Hub restarts; read again then"
            )

    def _unknown(self, partition: Partition, pending: Pending) -> OutcomeUnknown:
        self._fail()
        partition.pending.end(pending, failed=True)
        return OutcomeUnknown(
            "the write reached the disk, but not for certain",
            hint="read the document before anything else",
        )

    def _fail(self) -> None:
        is_first = not self._failed.is_set()
        self._failed.set()
        if is_first and self._on_failure:
            self._on_failure()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """One put: what is to be where, under which condition, and until when to try."""

    path: DocPath
    data: bytes
    new: str
    expected: str
    announced: Callable[[], None]
    """Returns when the audit trail holds the intent; called between staging and renaming."""
    deadline: float


def _document(folder: Folder | None, name: str) -> Document:
    data = None if folder is None else read_in(folder, name)
    return Missing() if data is None else Present(data)


def _not_listed() -> NotFound:
    return NotFound(
        "no broken file of this name is in the scope", hint="pass a name that check lists"
    )
