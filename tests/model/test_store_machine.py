"""A store against a dict: whatever is asked in whatever order, restarts included."""

import hashlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from amux.core import revision
from amux.core.identity import GLOBAL, Scope
from amux.core.path import DocPath
from amux.errors import RevisionConflict
from amux.memory.document import Missing, Present
from amux.memory.files import Files

ABSENT = revision.ABSENT
PATHS = st.sampled_from(["MEMORY.md", "a/x.md", "a/b/y.md", "z.md", "汉/字.md"])
SCOPES = st.sampled_from([GLOBAL, Scope("principal:a")])
DATA = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60).map(
    lambda text: text.encode("utf-8")
)
STALE = hashlib.sha256(b"a text that the machine never writes, being longer than any").hexdigest()


class Store(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp(prefix="amux-machine-"))
        self.model: dict[tuple[Scope, str], bytes] = {}
        self.store = Files(str(self.top / "memory"))
        self.views = {scope: self.store.view(scope) for scope in (GLOBAL, Scope("principal:a"))}

    def revision(self, scope: Scope, path: str) -> str:
        data = self.model.get((scope, path))
        return ABSENT if data is None else revision.of(data)

    @rule(scope=SCOPES, path=PATHS, data=DATA)
    def put(self, scope: Scope, path: str, data: bytes) -> None:
        now = self.revision(scope, path)
        put = self.store.put(scope, DocPath.parse(path), data, now)
        assert put == (put_of := type(put)(revision.of(data), now != revision.of(data))), put_of
        self.model[scope, path] = data

    @rule(scope=SCOPES, path=PATHS, data=DATA, expected=st.sampled_from([ABSENT, STALE]))
    def put_stale(self, scope: Scope, path: str, data: bytes, expected: str) -> None:
        now = self.revision(scope, path)
        if expected == now:
            return
        with pytest.raises(RevisionConflict) as refused:
            self.store.put(scope, DocPath.parse(path), data, expected)
        assert refused.value.details["observed"] == now

    @rule(scope=SCOPES, path=PATHS)
    def remove(self, scope: Scope, path: str) -> None:
        now = self.revision(scope, path)
        assert self.store.remove(scope, DocPath.parse(path), now) == now
        self.model.pop((scope, path), None)

    @precondition(lambda self: self.model)
    @rule(scope=SCOPES, path=PATHS)
    def remove_stale(self, scope: Scope, path: str) -> None:
        if (scope, path) in self.model:
            with pytest.raises(RevisionConflict):
                self.store.remove(scope, DocPath.parse(path), STALE)

    @rule(scope=SCOPES, path=PATHS, data=DATA)
    def edit_behind_its_back(self, scope: Scope, path: str, data: bytes) -> None:
        if (scope, path) in self.model:
            top = "global" if scope == GLOBAL else f"users/{hashlib.sha256(b'a').hexdigest()}"
            (self.top / "memory" / top / path).write_bytes(data)
            self.model[scope, path] = data

    @rule(stepwise=st.booleans(), has_notices=st.booleans())
    def restart(self, stepwise: bool, has_notices: bool) -> None:
        self.close()
        self.store = Files(str(self.top / "memory"), stepwise=stepwise, has_notices=has_notices)
        self.views = {scope: self.store.view(scope) for scope in self.views}

    @rule(scope=SCOPES)
    def look(self, scope: Scope) -> None:
        view = self.views[scope]
        for _ in view.refresh():
            pass
        ours = {path: data for (of, path), data in self.model.items() if of == scope}
        assert {path: view.read(path) for path in view.documents} == ours
        assert {path: stamp.size for path, stamp in view.documents.items()} == {
            path: len(data) for path, data in ours.items()
        }
        assert self.store.usage(scope) == (len(ours), sum(map(len, ours.values())))
        assert (view.skipped, view.is_complete) == (0, True)

    @invariant()
    def reads_are_the_model(self) -> None:
        for scope in self.views:
            for path in ("MEMORY.md", "a/x.md", "a/b/y.md", "z.md", "汉/字.md"):
                data = self.model.get((scope, path))
                expected = Missing() if data is None else Present(data)
                assert self.store.read(scope, DocPath.parse(path)) == expected

    def close(self) -> None:
        for view in self.views.values():
            view.close()
        self.store.close()

    def teardown(self) -> None:
        self.close()
        shutil.rmtree(self.top)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Store,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


@pytest.mark.requirement("M19", "M21", "M29")
def test_a_store_is_a_dict_for_a_moment() -> None:
    run(6, 12)


@pytest.mark.slow
@pytest.mark.requirement("M8", "M9", "M19", "M21", "M29")
def test_a_store_is_a_dict_for_a_long_time() -> None:
    run(300, 50)
