"""Where the workspace of a start directory is."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal.ground import layout, namespace
from amux.journal.ground.layout import Layout
from tests.support.workspaces import NAMESPACE, STRANGER, project
from tests.support.workspaces import layout as write_layout

as_root = pytest.mark.usefixtures("as_root")


def find(
    start: Path, *, named: bool = False, home: Path = Path("/nobody"), uid: int | None = None
) -> Layout:
    return layout.find(
        os.path.realpath(start),
        is_named=named,
        home=os.path.realpath(home),
        uid=os.geteuid() if uid is None else uid,
    )


def reason(start: Path, **more: object) -> str:
    with pytest.raises(AmuxError) as refused:
        find(start, **more)  # type: ignore[arg-type]
    return str(refused.value.details["reason"])


# --- J12 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J12")
def test_the_flag_goes_before_the_variable_and_that_before_where_we_stand(tmp_path: Path) -> None:
    here = os.path.realpath(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("a")
    assert layout.start_directory("", "", here) == (here, False)
    assert layout.start_directory("", "b", here) == (f"{here}/b", True)
    assert layout.start_directory("link", "b", here) == (f"{here}/a", True)
    assert layout.start_directory(f"{here}/b", "", "/") == (f"{here}/b", True)


@pytest.mark.requirement("J12")
def test_a_start_directory_that_is_gone_is_no_workspace(tmp_path: Path) -> None:
    write_layout(tmp_path)
    assert reason(tmp_path / "gone") == "MEMORY_WORKSPACE_UNRESOLVED"
    with pytest.raises(AmuxError):
        layout.find("", is_named=False, home="/nobody", uid=0)


# --- J13 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J13")
def test_each_row_in_its_order(tmp_path: Path) -> None:
    below = tmp_path / "ws" / "repo" / "src"
    below.mkdir(parents=True)
    assert reason(below) == "MEMORY_WORKSPACE_UNRESOLVED"
    (tmp_path / "ws" / "repo" / "go.mod").write_text("")
    assert (find(below).row, find(below).base) == (4, str(tmp_path / "ws" / "repo"))
    (tmp_path / "ws" / ".git").mkdir()
    assert (find(below).row, find(below).base) == (4, str(tmp_path / "ws"))
    (tmp_path / "ws" / ".devcodex").mkdir()
    assert (find(below).row, find(below).base) == (3, str(tmp_path / "ws"))
    write_layout(tmp_path, NAMESPACE)
    assert (find(below).row, find(below).kind) == (1, "namespace")
    write_layout(tmp_path / "ws")
    assert (find(below).row, find(below).kind) == (2, "project")
    assert find(below).base == str(tmp_path / "ws")


@pytest.mark.requirement("J13", "JA31")
def test_a_devcodex_above_the_repository_is_not_the_repositorys(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project(home, "repo")
    (home / ".devcodex").mkdir()
    found = find(home / "repo", home=home)
    assert (found.row, found.base) == (4, str(home / "repo"))
    assert not found.is_created


@pytest.mark.requirement("J13")
def test_only_a_layout_reaches_over_a_repository(tmp_path: Path) -> None:
    project(tmp_path, "repo/src")
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / ".devcodex").mkdir()
    assert (find(tmp_path / "repo").row, find(tmp_path).row) == (4, 3)
    write_layout(tmp_path)
    assert find(tmp_path / "repo").base == str(tmp_path)


@pytest.mark.requirement("J13")
def test_the_home_directory_is_a_workspace_only_if_it_was_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".devcodex").mkdir(parents=True)
    (home / "notes").mkdir()
    assert reason(home, home=home) == "MEMORY_WORKSPACE_UNRESOLVED"
    assert reason(home / "notes", home=home) == "MEMORY_WORKSPACE_UNRESOLVED"
    assert find(home, home=home, named=True).row == 3
    (home / ".devcodex").rmdir()
    (home / ".git").mkdir()
    assert reason(home, home=home) == "MEMORY_WORKSPACE_UNRESOLVED"
    assert find(home, home=home, named=True).row == 4
    # Rows 1 and 2 are a person's own word.
    write_layout(home)
    assert find(home / "notes", home=home).row == 2


@pytest.mark.requirement("J13")
def test_a_project_in_a_home_that_is_a_repository_is_a_workspace_by_its_marker(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    (home / ".git").mkdir(parents=True)
    project(home, "app", marker="package.json")
    assert find(home / "app", home=home).base == str(home / "app")


BROKEN = {
    "empty": b"",
    "no JSON": b"mode: project-root",
    "no object": b'["project-root"]',
    "another mode": b'{"mode":"monorepo"}',
    "no mode": b"{}",
    "a mode that is no text": b'{"mode":["project-root"]}',
    "a key twice": b'{"mode":"project-root","mode":"workspace-namespace"}',
    "not UTF-8": b'{"mode":"project-root","x":"\xff"}',
    "too deep": b'{"mode":"project-root","x":' + b"[" * 40 + b"]" * 40 + b"}",
    "bottomless": b"[" * 60_000,
    "too large": b'{"mode":"project-root","x":"' + b"x" * 65_536 + b'"}',
    "a lone surrogate": b'{"mode":"project-root","x":"\\ud800"}',
    "a project that is a path": b'{"mode":"project-root","project":"../up"}',
    "a project that is a number": b'{"mode":"project-root","project":7}',
    "an empty project": b'{"mode":"project-root","project":""}',
    "not a number": b'{"mode":"project-root","x":NaN}',
}


@pytest.mark.requirement("J13", "JA30")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_layout_is_refused_and_never_passed_over(tmp_path: Path, name: str) -> None:
    write_layout(tmp_path)
    write_layout(tmp_path / "near", BROKEN[name])
    assert reason(tmp_path / "near") == "MEMORY_LAYOUT_INVALID"
    assert layout.is_there(str(tmp_path / "near"), is_named=False, home="/nobody", uid=0)


@pytest.mark.requirement("J13")
def test_a_layout_of_64_kib_is_read(tmp_path: Path) -> None:
    head, tail = b'{"mode":"project-root","x":"', b'"}'
    write_layout(tmp_path, head + b"x" * (65_536 - len(head) - len(tail)) + tail)
    assert find(tmp_path).row == 2


@pytest.mark.requirement("J13")
@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_a_layout_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = write_layout(tmp_path)
    path.rename(tmp_path / "elsewhere")
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert reason(tmp_path) == "MEMORY_LAYOUT_INVALID"


@pytest.mark.requirement("J13")
def test_the_cheap_look_tells_rows_1_to_3_from_the_others(tmp_path: Path) -> None:
    def is_there() -> bool:
        return layout.is_there(str(tmp_path), is_named=False, home="/nobody", uid=os.geteuid())

    assert not is_there()
    (tmp_path / ".git").mkdir()
    assert not is_there()
    (tmp_path / ".devcodex").mkdir()
    assert is_there()


def read_or_refused(data: bytes) -> dict[str, object] | None:
    try:
        return layout.parse(data)
    except AmuxError as refusal:
        if refusal.details["reason"] != "MEMORY_LAYOUT_INVALID":
            raise
        return None


@given(st.binary(max_size=400))
def test_any_bytes_are_a_layout_or_a_refusal(data: bytes) -> None:
    value = read_or_refused(data)
    assert value is None or value["mode"] in ("workspace-namespace", "project-root")


@given(
    st.dictionaries(
        st.sampled_from(["mode", "project", "schemaVersion", "x"]),
        st.one_of(
            st.sampled_from(["workspace-namespace", "project-root", "a/b", ".."]),
            st.none(),
            st.integers(),
            st.text(max_size=5),
        ),
    )
)
def test_a_layout_is_read_or_refused_by_mode_and_project(value: dict[str, object]) -> None:
    mode = value.get("mode") in ("workspace-namespace", "project-root")
    name = value.get("project")
    is_good = mode and (name is None or namespace.broken_rule(name) is None)
    assert (read_or_refused(json.dumps(value).encode()) is not None) == is_good


# --- foreign `.devcodex`, links -------------------------------------------------------------------


@as_root
@pytest.mark.requirement("J13", "JA29")
@pytest.mark.parametrize("text", [None, NAMESPACE, "broken"])
def test_a_strangers_devcodex_in_a_shared_parent_is_passed_over(
    tmp_path: Path, text: str | None
) -> None:
    project(tmp_path, "repo")
    if text is None:
        (tmp_path / ".devcodex").mkdir()
    else:
        write_layout(tmp_path, text)
    os.chown(tmp_path / "repo", STRANGER, STRANGER)
    found = find(tmp_path / "repo", uid=STRANGER)
    assert (found.row, found.base) == (4, str(tmp_path / "repo"))
    assert found.warnings == ("foreign-devcodex-skipped",)


@as_root
@pytest.mark.requirement("J13", "JA29")
def test_a_strangers_link_in_a_shared_parent_is_passed_over_too(tmp_path: Path) -> None:
    project(tmp_path, "repo")
    (tmp_path / ".devcodex").symlink_to("/")
    assert find(tmp_path / "repo", uid=STRANGER).warnings == ("foreign-devcodex-skipped",)


@as_root
@pytest.mark.requirement("J19", "JA29")
@pytest.mark.parametrize("text", [None, NAMESPACE])
def test_the_repositorys_own_devcodex_of_another_user_is_refused(
    tmp_path: Path, text: str | None
) -> None:
    project(tmp_path, "repo/src")
    (tmp_path / "repo" / ".git").mkdir()
    if text is None:
        (tmp_path / "repo" / ".devcodex").mkdir()
    else:
        write_layout(tmp_path / "repo", text)
    assert reason(tmp_path / "repo", uid=STRANGER) == "MEMORY_WORKSPACE_FOREIGN_OWNER"
    assert find(tmp_path / "repo", uid=0).base == str(tmp_path / "repo")


@pytest.mark.requirement("J19")
@pytest.mark.parametrize("is_file", [True, False])
def test_a_devcodex_that_is_a_link_or_a_file_is_refused(tmp_path: Path, is_file: bool) -> None:
    (tmp_path / "real").mkdir()
    if is_file:
        (tmp_path / ".devcodex").write_text("")
    else:
        (tmp_path / ".devcodex").symlink_to("real")
    assert reason(tmp_path) == "MEMORY_PATH_REPARSE_BLOCKED"


# --- J14 -----------------------------------------------------------------------------------------


def git(place: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words],
        cwd=place,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    main = tmp_path / "Lucas Costa" / "项目 é"
    main.mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    return main


@pytest.mark.slow
@pytest.mark.requirement("J14", "JA31")
@pytest.mark.parametrize("relative", ["false", "true"])
def test_a_linked_worktree_shares_the_main_trees_memory(repository: Path, relative: str) -> None:
    linked = repository.parent / "linked"
    git(repository, "-c", f"worktree.useRelativePaths={relative}", "worktree", "add", str(linked))
    (linked / "src").mkdir()
    for start in (linked, linked / "src"):
        found = find(start)
        assert (found.base, found.start) == (str(repository), str(repository))
    (linked / ".devcodex").mkdir()
    assert find(linked / "src").base == str(linked)


@pytest.mark.slow
@pytest.mark.requirement("J14")
def test_a_worktree_in_a_workspace_of_projects_means_the_main_trees_project(
    repository: Path,
) -> None:
    write_layout(repository.parent, NAMESPACE)
    linked = repository.parent.parent / "linked"
    git(repository, "worktree", "add", "-q", str(linked))
    assert find(linked).base == str(repository.parent)
    assert find(linked).start == str(repository)


@pytest.mark.requirement("J14")
@pytest.mark.parametrize(
    "line",
    [
        "gitdir: {main}/.git/worktrees/a/b",
        "gitdir: {main}/.git/modules/a",
        "gitdir: {main}/gone/.git/worktrees/a",
        "gitdir: {main}/.git/worktrees/",
        "gitdir: {main}/.git/worktrees/a\nmore",
        "worktree: {main}/.git/worktrees/a",
        "",
        "gitdir: \0/.git/worktrees/a",
    ],
)
def test_a_git_file_of_another_form_leads_nowhere(tmp_path: Path, line: str) -> None:
    project(tmp_path, "main")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").write_text(line.format(main=tmp_path / "main"))
    assert find(tmp_path / "linked").base == str(tmp_path / "linked")


@pytest.mark.requirement("J14")
def test_a_worktree_of_the_home_directory_does_not_make_that_a_workspace(tmp_path: Path) -> None:
    home = tmp_path / "home"
    project(home, ".")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").write_text(f"gitdir: {home}/.git/worktrees/linked\n")
    assert reason(tmp_path / "linked", home=home, named=True) == "MEMORY_WORKSPACE_UNRESOLVED"


# --- J15 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J15")
def test_a_project_is_called_by_its_layout_else_by_its_directory(tmp_path: Path) -> None:
    for name, called in (("billing", "billing"), ("my app", "project"), ("Workspace", "project")):
        (tmp_path / name / ".git").mkdir(parents=True)
        assert find(tmp_path / name).project == called
    write_layout(tmp_path / "billing", '{"mode":"project-root","project":"invoices/core"}')
    assert find(tmp_path / "billing").project == "invoices/core"
