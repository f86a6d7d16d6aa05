"""`uninstall`: what amux made is listed, all of it, and nothing else is ever removed."""

import json
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.surface.cli.test_hub import Machine, wait_for


def everything(top: Path) -> set[str]:
    return {str(path) for path in top.rglob("*")}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "temporary").mkdir()
    found = Machine(tmp_path / "home")
    found.environment["TMPDIR"] = str(tmp_path / "temporary")
    return found


def use_for_a_day(machine: Machine) -> None:
    """Do what makes files: settings, a Hub, documents, an edit that was refused, a crash."""
    machine.answer("system", "config", "set", "memory.enabled", "true")
    script = machine.home.parent / "editor"
    script.write_text("#!/bin/sh\necho edited > $1\necho swap > $1.swp\nexit 1\n")
    script.chmod(0o755)
    editor = {"VISUAL": str(script)}
    assert machine.run("memory", "edit", "notes/a.md", **editor)[0] == 2
    script.write_text("#!/bin/sh\necho edited > $1\n")
    assert machine.run("memory", "edit", "notes/a.md", **editor)[0] == 0
    machine.answer("hub", "restart")
    assert machine.answer("memory", "list")["documents"]


@pytest.mark.requirement("M52", "row-23")
@pytest.mark.slow
@pytest.mark.parametrize("is_running", [True, False], ids=["hub runs", "hub stopped"])
def test_the_dry_run_lists_what_a_day_of_use_made_and_uninstall_leaves_memory(
    machine: Machine, tmp_path: Path, is_running: bool
) -> None:
    try:
        use_for_a_day(machine)
        if not is_running:
            machine.answer("hub", "stop")
        made = (everything(tmp_path) | {str(machine.home)}) - {
            str(tmp_path / "editor"), str(tmp_path / "temporary"),
        }  # fmt: skip
        listed = machine.answer("uninstall", "--dry-run")
        remove, keep = listed["remove"], listed["keep"]
        assert isinstance(remove, list)
        assert isinstance(keep, list)
        assert set(remove) | set(keep) | {str(machine.home)} == made
        assert everything(tmp_path) >= made - {str(machine.home)}

        held = machine.answer("hub", "status").get("pid")
        removed = machine.answer("uninstall", "--yes")
        wait_for(lambda: held is None or not Path(f"/proc/{held}").exists())
        assert set(remove) == set(removed["remove"])  # type: ignore[call-overload]
        assert everything(machine.home) == set(keep)
        assert [one.name for one in machine.home.iterdir()] == ["memory"]
        assert (machine.home / "memory" / "global" / "notes" / "a.md").read_text() == "edited\n"
        assert list((tmp_path / "temporary").iterdir()) == []
    finally:
        machine.close()


@pytest.mark.requirement("M52")
@pytest.mark.slow
def test_memory_goes_too_when_asked_for_and_a_persons_own_files_never(machine: Machine) -> None:
    try:
        use_for_a_day(machine)
        (machine.home / "config.toml").write_text("")
        (machine.home / "mine").mkdir()
        (machine.home / "mine" / "x").write_text("")
        found = machine.answer("uninstall", "--yes", "--with-memory")
        assert found["keep"] == [str(machine.home / name) for name in ("config.toml", "mine")]
        assert everything(machine.home) == {
            str(machine.home / name) for name in ("config.toml", "mine", "mine/x")
        }
    finally:
        machine.close()


@pytest.mark.requirement("M52")
@pytest.mark.slow
def test_an_empty_root_goes_itself_and_uninstalling_twice_is_no_error(machine: Machine) -> None:
    try:
        use_for_a_day(machine)
        machine.answer("uninstall", "--yes", "--with-memory")
        assert not machine.home.exists()
        assert machine.answer("uninstall", "--yes") == {"dry_run": False, "remove": [], "keep": []}
        assert not machine.home.exists()
    finally:
        machine.close()


@pytest.mark.requirement("M52")
def test_a_folder_that_is_no_root_of_amux_is_left_alone(home: Path) -> None:
    for name in ("run", "hub", "memory"):
        (home / name).mkdir(parents=True)
        (home / name / "precious").write_text("")
    before = everything(home)
    done = Command(home).run("uninstall", "--yes", "--with-memory")
    assert done.answer["remove"] == []
    assert everything(home) == before


@pytest.mark.requirement("M52")
def test_without_a_terminal_a_yes_must_be_given(home: Path) -> None:
    done = Command(home).run("uninstall", stdin=b"yes\n")
    assert done.details["argument"] == "yes"


@pytest.mark.requirement("M52")
def test_a_short_socket_elsewhere_is_listed_with_the_folder_made_for_it(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40)
    (home / "run").mkdir(parents=True)
    (home / "layout").write_text("1\n")
    folder = tmp_path / "amux-0"
    folder.mkdir()
    (folder / "amux-12345678.sock").write_text("")
    (home / "run" / "hub.socket").write_text(str(folder / "amux-12345678.sock"))
    done = Command(home).run("uninstall", "--yes")
    assert done.status == 0
    assert str(folder) in json.loads(done.out)["remove"]
    assert everything(tmp_path) == set()


@pytest.mark.requirement("M52")
def test_a_folder_of_sockets_that_others_use_stays(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40)
    (home / "run").mkdir(parents=True)
    (home / "layout").write_text("1\n")
    folder = tmp_path / "amux-0"
    folder.mkdir()
    for name in ("amux-12345678.sock", "amux-other.sock"):
        (folder / name).write_text("")
    (home / "run" / "hub.socket").write_text(str(folder / "amux-12345678.sock"))
    Command(home).run("uninstall", "--yes")
    assert everything(tmp_path) == {str(folder), str(folder / "amux-other.sock")}
