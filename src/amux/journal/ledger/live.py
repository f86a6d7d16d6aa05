"""The live files that this process holds: as long as it does, its sessions are live (T10).

Rule 1: who acquires, renews or binds holds a lock on its session's live file, together with other
        processes of the session. The lock dies with the process and is the only evidence.
Rule 2: at each authority call the path must still name the file that is locked; else it is made and
        locked again, under the root's lock, where nobody asks meanwhile.
Rule 3: the file is let go when the last task is over for which this process holds it.
"""

from typing import Protocol


class Lock(Protocol):
    """A lock that is held."""

    @property
    def counts(self) -> bool:
        """Tell whether its path still names the file that is locked."""

    def release(self) -> None:
        """Let it go; a second time does nothing."""


class State(Protocol):
    """What of a root's runtime state is needed here; all of it under the root's lock."""

    def live(self, session_digest: str) -> Lock:
        """Lock a session's live file together with others."""

    def bury(self, session_digest: str) -> bool:
        """Remove a live file that nobody holds."""

    def bury_others(self, session_digest: str) -> None:
        """Remove the live files of other sessions that nobody holds."""


class Live:
    """The live files of one process."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], Lock] = {}
        self._tasks: dict[tuple[str, str], set[str]] = {}

    def keep(self, state: State, active_root: str, session: str) -> None:
        """Make good, at an authority call, what somebody deleted meanwhile."""
        if (active_root, session) in self._locks:
            self._lock(state, active_root, session)

    def hold(self, state: State, active_root: str, session: str, task_id: str) -> None:
        """Be live for a task from now on."""
        if not self.holds(active_root, session):
            state.bury_others(session)  # what the dead left; once a process is often enough
        self._lock(state, active_root, session)
        self._tasks.setdefault((active_root, session), set()).add(task_id)

    def drop(self, state: State, active_root: str, session: str, task_id: str) -> None:
        """Be live for a task no longer; with the last one the file goes."""
        tasks = self._tasks.get((active_root, session), set())
        tasks.discard(task_id)
        if not tasks:
            self._release((active_root, session))
            state.bury(session)

    def holds(self, active_root: str, session: str) -> bool:
        """Tell whether this process holds a session's live file."""
        return (active_root, session) in self._locks

    def release_all(self) -> None:
        """Let all go, as the end of the process does; a verb of the command line is one call."""
        for key in list(self._locks):
            self._release(key)

    def _lock(self, state: State, active_root: str, session: str) -> None:
        key = (active_root, session)
        known = self._locks.get(key)
        if known is not None and known.counts:
            return
        # The new lock first: between two there would be a moment without a live turn.
        self._locks[key] = state.live(session)
        if known is not None:
            known.release()

    def _release(self, key: tuple[str, str]) -> None:
        self._tasks.pop(key, None)
        lock = self._locks.pop(key, None)
        if lock is not None:
            lock.release()
