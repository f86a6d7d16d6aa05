"""What cannot be isolated is refused by its step, before anything is asked or made (R25-R28)."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import mounts
from tests.support.team import Team
from tests.support.users import locked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def company(company: Team) -> Team:
    company.shell()
    return company


@pytest.fixture(autouse=True)
def nothing_made(company: Team) -> Iterator[None]:
    before = (company.sessions(), company.hub.ask("session_list")["sessions"])
    homes = [sorted(one.home.rglob("*")) for one in (company.alice, company.bob)]
    yield
    assert (company.sessions(), company.hub.ask("session_list")["sessions"]) == before
    assert [sorted(one.home.rglob("*")) for one in (company.alice, company.bob)] == homes
    assert company.left_over() == company.live_credentials() == []
    company.configure()
    company.shell()


def dac(company: Team, user: str = "", **more: Any) -> dict[str, Any]:
    """Give the refusal of a launch as somebody."""
    words = ("--isolation", "linux-dac", "--user", user or company.alice.name)
    return company.refused("run", "claude", *words, "--prompt", "x", **more)


def step(refusal: dict[str, Any]) -> str:
    assert refusal["code"] == "launch_refused", refusal
    return str(refusal["details"]["step"])


# --- users ---


@pytest.mark.requirement("R27")
@pytest.mark.parametrize("name", ["no-such-user", "root", "0", "-x", "a\nb", "nobody", "daemon"])
def test_a_user_who_is_nobody_to_hand_a_run_to_is_refused(name: str, company: Team) -> None:
    refusal = company.refused(
        "run", "claude", "--isolation", "linux-dac", f"--user={name}", "--prompt", "x"
    )
    assert step(refusal) == "isolation"


@pytest.mark.requirement("R27")
def test_without_a_user_or_with_one_too_many_it_is_refused(company: Team) -> None:
    refusal = company.refused("run", "claude", "--isolation", "linux-dac", "--prompt", "x")
    assert (refusal["code"], refusal["details"]["argument"]) == ("invalid_argument", "user")
    for isolation in ("none", "private-home"):
        words = ("--isolation", isolation, "--user", company.alice.name)
        refusal = company.refused("run", "claude", *words, "--prompt", "x")
        assert (refusal["code"], refusal["details"]["argument"]) == ("invalid_argument", "user")


@pytest.mark.requirement("R27")
@pytest.mark.parametrize("how", ["missing", "another's", "everybody's", "a file"])
def test_a_user_without_a_home_of_their_own_is_refused(how: str, company: Team) -> None:
    home = company.folder / f"home-{how.replace(' ', '-').replace(chr(39), '')}"
    eve = company.eve
    if how == "a file":
        home.write_text("")
    elif how != "missing":
        home.mkdir(mode=0o755)
        os.chown(home, *((eve.uid, eve.gid) if how == "everybody's" else (0, 0)))
        home.chmod(0o777 if how == "everybody's" else 0o755)
    locked("usermod", "-d", str(home), eve.name)
    try:
        refusal = dac(company, eve.name)
        assert step(refusal) == "isolation"
        assert refusal["details"]["cause"] == "no_home"
    finally:
        locked("usermod", "-d", str(eve.home), eve.name)


@pytest.mark.requirement("R27")
def test_a_directory_that_the_user_cannot_enter_is_refused(company: Team) -> None:
    closed = company.folder / "closed"
    closed.mkdir(mode=0o700, exist_ok=True)
    words = ("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    refusal = company.refused(*words, "--prompt", "x", "--cwd", str(closed))
    assert (refusal["code"], refusal["details"]["argument"]) == ("invalid_argument", "cwd")


# --- where runs are made ---


def a_file(company: Team) -> str:
    (company.folder / "taken").write_text("")
    return str(company.folder / "taken")


def below_a_file(company: Team) -> str:
    return a_file(company) + "/runs"


def of_another(company: Team) -> str:
    path = company.folder / "of-alice"
    path.mkdir(exist_ok=True)
    os.chown(path, company.alice.uid, -1)
    return f"{path}/runs"


def link_to_another(company: Team) -> str:
    of_another(company)
    path = company.folder / "linked"
    if not path.is_symlink():
        path.symlink_to(company.folder / "of-alice")
    return f"{path}/runs"


def writable(company: Team) -> str:
    path = company.folder / "writable"
    path.mkdir(exist_ok=True)
    path.chmod(0o777)
    return str(path)


@pytest.mark.requirement("R27", "run-25")
@pytest.mark.parametrize("where", [a_file, below_a_file, of_another, link_to_another, writable])
def test_a_run_directory_that_is_taken_or_another_could_swap_is_refused(
    where: Callable[[Team], str], company: Team
) -> None:
    company.configure(run_dir=where(company))
    assert step(dac(company)) == "isolation"


@pytest.mark.requirement("R27", "run-25")
@pytest.mark.parametrize(
    ("option", "word"), [("noexec", "noexec"), ("size=64k", "full"), ("nr_inodes=8", "full")]
)
def test_a_run_directory_where_nothing_can_be_executed_or_written_is_refused(
    option: str, word: str, company: Team
) -> None:
    folder = company.folder / f"disk-{word}"
    name, _, value = option.partition("=")
    with mounts.small_disk(folder, mode="711", **({name: value} if value else {})):
        if not value:
            mounts.mount("-o", "remount,noexec", str(folder))
        company.configure(run_dir=str(folder / "runs"))
        refusal = dac(company)
        assert step(refusal) == "isolation"
        assert word in refusal["message"]
        assert list(folder.iterdir()) == []


@pytest.mark.requirement("R27")
@pytest.mark.parametrize("text", ['run_dir = "runs"', "run_dir = 1", 'rundir = "/x"', 'python=""'])
def test_settings_of_launches_that_are_not_known_are_refused_by_name(
    text: str, company: Team
) -> None:
    company.put("config.toml", f"[runtime]\n{text}\n")
    refusal = dac(company)
    assert refusal["code"] == "invalid_argument"
    assert refusal["details"]["argument"].startswith("runtime.")


# --- the copied command line ---


@pytest.mark.requirement("R28", "run-25")
@pytest.mark.parametrize("python", ["missing", "private", "old", "no program", "a directory"])
def test_no_python_that_the_user_can_execute_is_refused(python: str, company: Team) -> None:
    path = company.folder / f"python-{python.replace(' ', '-')}"
    if python == "a directory":
        path.mkdir(exist_ok=True)
    elif python != "missing":
        says = {"old": "echo False", "no program": "exit 1"}.get(python, 'exec python3 "$@"')
        path.write_text(f"#!/bin/sh\n{says}\n")
        path.chmod(0o700 if python == "private" else 0o755)
    company.configure(python=str(path))
    refusal = dac(company)
    assert (step(refusal), refusal["details"]["cause"]) == ("cli", "no_python")


@pytest.mark.requirement("R27")
def test_a_program_that_only_the_caller_finds_is_not_found_for_another_user(company: Team) -> None:
    company.put("agents.toml", "")
    refusal = dac(company, PATH=f"{company.bin}:/usr/bin:/bin")
    assert step(refusal) == "executable"


# --- agents.toml ---


TOMLS = {
    'credentials = "shared"': "claude.credentials",
    "credentials = 1": "claude.credentials",
    'credential = "copy"': "claude.credential",
    'credentials = "api-key"': "claude.variable",
    'credentials = "api-key"\nvariable = "LD_PRELOAD"': "claude.variable",
    'credentials = "api-key"\nvariable = "PATH"': "claude.variable",
    'credentials = "api-key"\nvariable = "AMUX_API_KEY"': "claude.variable",
    'credentials = "api-key"\nvariable = "A_KEY=x"': "claude.variable",
    'credentials = "api-key"\nvariable = ["A_KEY"]': "claude.variable",
    'variable = "ANTHROPIC_API_KEY"': "claude.variable",
    'credentials = "copy"': "claude.files",
    'credentials = "copy"\nfiles = "/root/.claude"': "claude.files",
    'credentials = "copy"\nfiles = ["/root/.claude"]': "claude.files",
    'credentials = "copy"\nfiles = ["/root/.claude/settings.json"]': "claude.files",
    'credentials = "copy"\nfiles = [".claude/.credentials.json"]': "claude.files",
    'credentials = "copy"\nfiles = ["/a/.credentials.json", "/b/.credentials.json"]':
        "claude.files",
    'credentials = "copy"\nfiles = [1]': "claude.files",
    'files = ["/root/.claude/.credentials.json"]': "claude.files",
    'home = "/root"': "claude.home",
    'executable = ""': "claude.executable",
}  # fmt: skip


@pytest.mark.requirement("R26")
@pytest.mark.parametrize("text", TOMLS)
@pytest.mark.parametrize("isolation", ["linux-dac", "private-home"])
def test_what_agents_toml_does_not_know_is_refused_by_name(
    isolation: str, text: str, company: Team
) -> None:
    company.put("agents.toml", f"[claude]\n{text}\n")
    words = ("--isolation", isolation)
    words += ("--user", company.alice.name) if isolation == "linux-dac" else ()
    refusal = company.refused("run", "claude", *words, "--prompt", "x")
    assert refusal["code"] == "invalid_argument"
    assert refusal["details"]["argument"] == TOMLS[text]


@pytest.mark.requirement("R26")
@pytest.mark.parametrize("how", ["another's", "everybody's", "a pipe", "a directory"])
def test_an_agents_toml_that_is_not_the_callers_own_is_refused(how: str, company: Team) -> None:
    path = company.hub.home / "agents.toml"
    if how in ("a pipe", "a directory"):
        path.unlink()
        os.mkfifo(path) if how == "a pipe" else path.mkdir()
    else:
        os.chown(path, company.alice.uid if how == "another's" else 0, -1)
        path.chmod(0o666 if how == "everybody's" else 0o600)
    try:
        assert dac(company)["code"] == "invalid_argument"
    finally:
        path.rmdir() if how == "a directory" else path.unlink()


@pytest.mark.requirement("R26", "R31")
@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_refused(value: str | None, company: Team) -> None:
    company.shell(credentials="api-key", variable="SOME_API_KEY")
    more = {} if value is None else {"SOME_API_KEY": value}
    refusal = dac(company, **more)
    assert (step(refusal), refusal["details"]["cause"]) == ("isolation", "not_set")


def login(company: Team, name: str = "login") -> Path:
    folder = company.folder / name
    folder.mkdir(mode=0o755, exist_ok=True)
    path = folder / ".credentials.json"
    if not path.exists():
        path.write_text('{"claudeAiOauth": "SECRET-OF-A-LOGIN"}')
        path.chmod(0o600)
    return path


def missing(company: Team) -> Path:
    return company.folder / "no-such" / ".credentials.json"


def a_link(company: Team) -> Path:
    path = company.folder / "link" / ".credentials.json"
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(login(company))
    return path


def behind_a_link(company: Team) -> Path:
    login(company)
    (company.folder / "linked-login").symlink_to(company.folder / "login")
    return company.folder / "linked-login" / ".credentials.json"


def behind_another(company: Team) -> Path:
    path = login(company, "login-below")
    os.chown(path.parent, company.bob.uid, -1)
    return path


def a_directory(company: Team) -> Path:
    path = company.folder / "directory" / ".credentials.json"
    path.mkdir(parents=True)
    return path


def a_pipe(company: Team) -> Path:
    path = company.folder / "pipe" / ".credentials.json"
    path.parent.mkdir()
    os.mkfifo(path)
    return path


def of_somebody_else(company: Team) -> Path:
    path = login(company, "login-of-bob")
    os.chown(path, company.bob.uid, -1)
    return path


def of_two_names(company: Team) -> Path:
    path = login(company, "login-twice")
    os.link(path, path.parent / "other")
    return path


def of_everybody(company: Team) -> Path:
    path = login(company, "login-of-all")
    path.chmod(0o666)
    return path


def too_large(company: Team) -> Path:
    path = login(company, "login-large")
    path.write_bytes(b"x" * 300_000)
    return path


@pytest.mark.requirement("R26", "R31")
@pytest.mark.parametrize("isolation", ["linux-dac", "private-home"])
@pytest.mark.parametrize(
    "make",
    [missing, a_link, behind_a_link, behind_another, a_directory, a_pipe, of_somebody_else,
     of_two_names, of_everybody, too_large],
)  # fmt: skip
def test_a_login_that_is_not_the_callers_own_file_is_not_copied(
    make: Callable[[Team], Path], isolation: str, company: Team
) -> None:
    path = company.folder / make.__name__
    found = path.read_text() if path.is_file() else str(make(company))
    path.write_text(found) if not path.exists() else None
    company.shell(credentials="copy", files=[found])
    words = ("--isolation", isolation)
    words += ("--user", company.alice.name) if isolation == "linux-dac" else ()
    refusal = company.refused("run", "claude", *words, "--prompt", "x")
    assert step(refusal) == "isolation"
    assert "SECRET" not in json.dumps(refusal)
