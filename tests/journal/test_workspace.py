"""Which memory a call means."""

import os
import string
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amux.errors import AmuxError
from amux.journal.ground import layout, namespace, workspace
from amux.journal.ground.workspace import Target
from tests.support.workspaces import NAMESPACE, project, tree
from tests.support.workspaces import layout as write_layout

PHRASE = "workspace-namespace memory scope is ambiguous"
MARKERS = (
    "package.json", "pyproject.toml", "go.mod", "Cargo.toml", "pom.xml", "build.gradle",
    "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "Package.swift", ".git",
)  # fmt: skip


def select(start: Path, **asked: object) -> Target:
    found = layout.find(os.path.realpath(start), is_named=True, home="/nobody", uid=os.geteuid())
    return workspace.select(found, **asked)  # type: ignore[arg-type]


def refusal(start: Path, **asked: object) -> AmuxError:
    with pytest.raises(AmuxError) as refused:
        select(start, **asked)
    return refused.value


def reason(start: Path, **asked: object) -> object:
    return refusal(start, **asked).details["reason"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write_layout(tmp_path, NAMESPACE)
    project(tmp_path, "billing", "web")
    return tmp_path


# --- J16 -----------------------------------------------------------------------------------------


RULES = {
    "": "required",
    "/billing": "absolute-path",
    "\\billing": "absolute-path",
    "C:/billing": "absolute-path",
    "..": "traversal-segment",
    "../billing": "traversal-segment",
    "a/./b": "traversal-segment",
    "a/../b": "traversal-segment",
    "a\\..\\b": "traversal-segment",
    "a//b": "invalid-shape",
    "a/": "invalid-shape",
    "a b": "invalid-shape",
    "项目": "invalid-shape",
    "a\n": "invalid-shape",
    "a/b/c/d/e": "invalid-shape",
    "a" * 65: "invalid-shape",
    "~": "invalid-shape",
    "Workspace": "reserved-root",
    "PROFILE/x": "reserved-root",
    "reports": "reserved-root",
    "migrations": "reserved-root",
    "Layout.json": "reserved-root",
    "rules.json": "reserved-root",
    "Task-Index.md": "reserved-root",
    "README.md": "reserved-root",
    ".devcodex": "reserved-root",
    "a/.Memory": "reserved-root",
    ".runtime-state": "reserved-root",
    "a/Requirements/b": "reserved-root",
    "bugs": "reserved-root",
    "a/optimizations": "reserved-root",
    "a/b/c/scenario-tests": "reserved-root",
}


@pytest.mark.requirement("J16")
@pytest.mark.parametrize("name", RULES)
def test_a_name_that_is_no_namespace_is_refused_by_its_rule(base: Path, name: str) -> None:
    refused = refusal(base, project=name)
    assert refused.code == "invalid_argument"
    assert refused.details["reason"] == "PROJECT_NAMESPACE_INVALID"
    assert refused.details["rule"] == RULES[name]


@pytest.mark.requirement("J16")
@pytest.mark.parametrize(
    "name", ["a", "a/b/c/d", "a" * 64, "A.b-c_9", "...", "a/workspace", "-", "reports2"]
)
def test_what_keeps_the_rules_is_a_namespace(name: str) -> None:
    assert namespace.require(name) == name


@pytest.mark.requirement("J16")
@given(st.text(max_size=40) | st.text(alphabet="aB./\\ _-9:", max_size=300))
def test_no_legal_namespace_leads_out_of_a_base(name: str) -> None:
    if namespace.broken_rule(name) is None:
        path = os.path.normpath(os.path.join("/base", name))
        assert path == f"/base/{name}"
        assert 1 <= len(name.split("/")) <= 4
        assert set(name) <= set(string.ascii_letters + string.digits + "_.-/")


@pytest.mark.requirement("J16")
def test_a_link_out_of_the_workspace_is_an_escape(base: Path) -> None:
    (base / "out").symlink_to("/")
    assert refusal(base, project="out").details["rule"] == "workspace-escape"
    assert refusal(base, project="out/etc").details["rule"] == "workspace-escape"
    (base / "in").symlink_to("billing")
    assert reason(base, project="in") == "HOST_WORKSPACE_UNRESOLVED"


# --- J17 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("J17")
@pytest.mark.parametrize("marker", MARKERS)
def test_each_marker_makes_a_directory_a_project(base: Path, marker: str) -> None:
    project(base, "new", marker=marker)
    assert "new" in workspace.discover(str(base)).projects
    assert select(base, project="new").below == "new"


@pytest.mark.requirement("J17")
def test_discovery_keeps_out_of_what_is_no_place_for_projects(base: Path) -> None:
    for skipped in ("node_modules", "dist", "build", "coverage", "target", "vendor", "venv"):
        project(base, f"{skipped}/inner")
    project(base, "__pycache__/inner", ".hidden/inner", "a b/inner", "bugs/inner")
    project(base, "group/deep/deeper/deepest", "group/deep/deeper/deepest/packages/under")
    project(base, "web/packages/ui", "web/src/inner", "web/apps/ui")
    project(base, "web/apps/ui/modules/part")  # a fifth level
    project(base, "web/packages/group/inner")
    (base / "link").symlink_to("billing")
    found = workspace.discover(str(base))
    assert not found.incomplete
    assert set(found.projects) == {
        "billing", "web", "web/packages/ui", "web/apps/ui", "group/deep/deeper/deepest",
    }  # fmt: skip


@pytest.mark.requirement("J17")
def test_discovery_ends_after_4096_directories_and_says_so(base: Path) -> None:
    for number in range(4_100):
        (base / f"d{number:04}").mkdir()
    found = workspace.discover(str(base))
    assert found.incomplete
    # A name that is unique among what was seen may not be unique.
    project(base, "d0001/only")
    assert reason(base, project="only") in ("PROFILE_TARGET_AMBIGUOUS", "HOST_WORKSPACE_UNRESOLVED")


@pytest.mark.requirement("J17")
def test_a_last_segment_names_a_project_if_it_is_the_only_one(base: Path) -> None:
    project(base, "team/api", "team/ui", "other/ui")
    assert select(base, project="api").project == "team/api"
    assert select(base, project="team/ui").project == "team/ui"
    refused = refusal(base, project="ui")
    assert refused.code == "ambiguous"
    assert refused.details["reason"] == "PROFILE_TARGET_AMBIGUOUS"
    assert sorted(refused.details["candidates"]) == ["other/ui", "team/ui"]
    assert reason(base, project="nothing") == "HOST_WORKSPACE_UNRESOLVED"
    assert reason(base, project="x/api") == "HOST_WORKSPACE_UNRESOLVED"
    assert reason(base, project="team") == "HOST_WORKSPACE_UNRESOLVED"


NAMES = st.sampled_from(["a", "b", "packages", "node_modules", ".x", "two words", "bugs"])
PLACES = st.lists(NAMES, min_size=1, max_size=5).map("/".join)


@settings(max_examples=60)
@pytest.mark.slow
@pytest.mark.requirement("J17")
@given(st.lists(PLACES, max_size=8), st.lists(PLACES, max_size=6))
def test_what_is_discovered_can_be_selected_and_lies_below(
    folders: list[str], projects: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        write_layout(base, NAMESPACE)
        for one in folders:
            (base / one).mkdir(parents=True, exist_ok=True)
        project(base, *projects, marker="go.mod")
        before = tree(base)
        found = workspace.discover(str(base)).projects
        assert len(found) == len(set(found))
        for name in found:
            assert name in projects
            assert select(base, project=name).active_root == str(base / ".devcodex" / name)
            assert select(base / name).project == name
        assert tree(base) == before


# --- J15, J18 ------------------------------------------------------------------------------------


@pytest.mark.requirement("J15", "J18")
def test_a_project_layout_has_one_memory(tmp_path: Path) -> None:
    write_layout(tmp_path, '{"mode":"project-root","project":"billing"}')
    for asked in ({}, {"scope": "project"}, {"project": "billing"}):
        found = select(tmp_path, **asked)
        assert (found.project, found.scope) == ("billing", "project")
        assert found.active_root == str(tmp_path / ".devcodex")
        assert found.source == str(tmp_path)
    assert reason(tmp_path, project="web") == "MEMORY_PROJECT_MISMATCH"
    assert reason(tmp_path, scope="workspace") == "MEMORY_PROJECT_MISMATCH"
    assert reason(tmp_path, project="billing", scope="workspace") == "MEMORY_PROJECT_MISMATCH"


@pytest.mark.requirement("J15", "J18", "JA2")
def test_a_namespace_has_a_memory_for_each_project_and_one_of_its_own(base: Path) -> None:
    devcodex = base / ".devcodex"
    for asked in ({"project": "billing"}, {"project": "billing", "scope": "project"}):
        found = select(base, **asked)
        assert (found.project, found.scope) == ("billing", "project")
        assert found.active_root == str(devcodex / "billing")
        assert found.source == str(base / "billing")
    found = select(base, scope="workspace")
    assert (found.project, found.scope) == ("workspace", "workspace")
    assert found.active_root == str(devcodex / "workspace")
    assert reason(base, project="billing", scope="workspace") == "MEMORY_PROJECT_MISMATCH"


@pytest.mark.requirement("J18")
def test_inside_a_project_the_deepest_one_is_meant(base: Path) -> None:
    project(base, "web/packages/ui")
    (base / "web" / "packages" / "ui" / "src").mkdir()
    (base / "web" / "docs").mkdir()
    assert select(base / "web" / "packages" / "ui" / "src").project == "web/packages/ui"
    assert select(base / "web" / "docs").project == "web"
    assert select(base / "web", project="billing").project == "billing"
    assert select(base / "web", scope="project").project == "web"
    assert select(base / "web", scope="workspace").project == "workspace"


@pytest.mark.requirement("J18", "JA1")
@pytest.mark.parametrize("asked", [{}, {"scope": "project"}])
def test_nothing_falls_back_to_the_workspaces_memory(base: Path, asked: dict[str, str]) -> None:
    before = tree(base)
    refused = refusal(base, **asked)
    assert refused.code == "ambiguous"
    assert refused.details["reason"] == "MEMORY_SCOPE_AMBIGUOUS"
    assert PHRASE in refused.message
    assert "project" in refused.message
    assert 'scope:"workspace"' in refused.message
    assert refused.details["candidates"] == ["billing", "web"]
    assert tree(base) == before


@pytest.mark.requirement("J18")
def test_of_many_projects_twenty_are_shown(base: Path) -> None:
    project(base, *(f"p{number:02}" for number in range(30)))
    refused = refusal(base)
    assert len(refused.details["candidates"]) == 20
    assert refused.details["incomplete"] is True
