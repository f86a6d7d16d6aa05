"""A user who wants more than a run gives, and a caller whose surroundings are hostile."""

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import mounts
from tests.support.team import Team
from tests.support.users import PYTHON

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def company(company: Team) -> Team:
    company.shell()
    return company


@pytest.fixture(autouse=True)
def clean(company: Team):
    company.alice.clear()
    yield
    assert company.left_over() == company.live_credentials() == []
    company.alice.clear()


def environment_of(said: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in said.splitlines() if "=" in line)


# --- the caller's surroundings -------------------------------------------------------------------


HOSTILE = {
    "LD_LIBRARY_PATH": "/tmp/evil",
    "LD_AUDIT": "/tmp/evil.so",
    "PYTHONHOME": "",
    "PYTHONSTARTUP": "/tmp/evil.py",
    "NODE_OPTIONS": "--require=/tmp/evil.js",
    "NODE_PATH": "/tmp/evil",
    "BASH_ENV": "/tmp/evil.sh",
    "ENV": "/tmp/evil.sh",
    "PROMPT_COMMAND": "touch /tmp/evil",
    "PERL5OPT": "-Mevil",
    "RUBYOPT": "-revil",
    "GIT_CONFIG_GLOBAL": "/tmp/evil",
    "GIT_SSH_COMMAND": "/tmp/evil",
    "SSH_AUTH_SOCK": "/tmp/evil.sock",
    "XDG_CONFIG_HOME": "/tmp/evil",
    "XDG_RUNTIME_DIR": "/tmp/evil",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/tmp/evil",
    "CODEX_HOME": "/tmp/evil",
    "PI_CODING_AGENT_DIR": "/tmp/evil",
    "CLAUDE_CONFIG_DIR": "/tmp/evil",
    "OPENAI_API_KEY": "sk-evil",
    "AWS_SECRET_ACCESS_KEY": "evil",
    "IFS": "x",
    "SHELL": "/tmp/evil",
    "USER": "root",
    "LOGNAME": "root",
    "HOME": "/tmp/evil",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8; touch /tmp/evil",
    "TERM": "../../tmp/evil\nX=1",
    "TZ": "/tmp/\x1bevil",
    "EDITOR": "/tmp/evil",
    "AMUX_SESSION": "s-000000000000",
    "AMUX_AGENT": "evil",
    "http_proxy": "http://evil",
}


@pytest.mark.requirement("R27", "R25", "R31")
def test_nothing_of_the_callers_environment_reaches_another_users_agent(company: Team) -> None:
    seen = environment_of(company.does("env\n", **HOSTILE))
    assert not [name for name, value in seen.items() if "evil" in value or "evil" in name]
    allowed = {
        "HOME", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "CODEX_HOME", "PI_CODING_AGENT_DIR",
        "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "COLORTERM", "TZ", "PWD", "OLDPWD",
        "_", "SHLVL", "AMUX_SESSION", "AMUX_AGENT", "AMUX_HUB", "AMUX_MEMORY_BINDING",
        "AMUX_CREDENTIAL_FILE", "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    }  # fmt: skip
    assert set(seen) <= allowed
    home = str(company.alice.home)
    assert (seen["HOME"], seen["CODEX_HOME"]) == (home, f"{home}/.codex")
    assert (seen["USER"], seen["SHELL"]) == (company.alice.name, "/bin/sh")
    assert seen["AMUX_AGENT"] == "claude-code"


@pytest.mark.requirement("R27")
@pytest.mark.parametrize("name", ["LD_PRELOAD", "PYTHONPATH", "PATH"])
def test_a_variable_that_is_code_does_not_reach_it_either(
    name: str, company: Team, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    for program in ("claude", "sh", "id", "python3"):
        (evil / program).write_text("#!/bin/sh\necho EVIL\n")
        (evil / program).chmod(0o755)
    before = company.environment.get(name, "")
    value = str(evil / "evil.so") if name == "LD_PRELOAD" else f"{evil}:{before}".rstrip(":")
    said = company.does("env; id\n", **{name: value})
    assert "EVIL" not in said
    assert str(evil) not in said


@pytest.mark.requirement("R27")
def test_the_process_has_the_users_ids_and_no_more(company: Team) -> None:
    shadow = os.stat("/etc/shadow").st_gid
    groups = os.getgroups()
    os.setgroups([0, shadow])
    try:
        said = company.does(
            "cat /proc/self/status; umask; cat /etc/shadow\ncat /proc/self/stat; echo ppid $PPID\n"
        )
    finally:
        os.setgroups(groups)
    told = dict(line.partition(":")[::2] for line in said.splitlines())
    alice = company.alice
    assert told["Uid"].split() == [str(alice.uid)] * 4
    assert told["Gid"].split() == [str(alice.gid)] * 4
    assert told["Groups"].split() == [str(alice.gid)]
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(told[name], 16) == 0
    assert told["NoNewPrivs"].strip() == "1"
    of_libc = 0b11 << 31  # signals 32 and 33: its posix_spawn ignores them, and nobody else may
    assert int(told["SigIgn"], 16) & ~of_libc == 0
    assert told["SigBlk"].strip().strip("0") == ""
    assert "\n0077\n" in said
    assert "root:" not in said


@pytest.mark.requirement("R27")
def test_a_program_that_makes_others_root_makes_nobody_root(company: Team) -> None:
    helper = company.folder / "id-of-root"
    helper.write_bytes(Path("/usr/bin/id").read_bytes())
    helper.chmod(0o4755)
    # It is one: as the same user outside of a run it works.
    assert b"euid=0" in company.alice.run(str(helper)).stdout
    assert "euid=0" not in company.does(f"{helper}\n")


@pytest.mark.requirement("R27")
def test_no_descriptor_of_the_caller_reaches_it(company: Team) -> None:
    company.alice.write(".do", "ls -l /proc/$$/fd\n")
    words = ("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    with open("/etc/shadow", "rb") as secret, socket.socket() as other:
        done = subprocess.run(
            company.argv(*words, "--prompt", "x"),
            env=company.environment,
            cwd=company.work,
            stdin=secret,
            capture_output=True,
            pass_fds=(secret.fileno(), other.fileno()),
            check=False,
        )
    assert done.returncode == 0, done.stderr
    said = (company.alice.home / "out").read_text()
    found = {
        line.split(" -> ")[0].split()[-1]: line.split(" -> ")[1]
        for line in said.splitlines()
        if " -> " in line
    }
    assert found["0"].startswith("pipe:")
    assert "shadow" not in said
    assert "socket" not in said
    # The shell has its script open, and nothing else.
    others = {place for name, place in found.items() if int(name) > 2}
    own = {company.alice.home / ".do", company.alice.home / "out", company.bin / "claude"}
    assert others <= {str(path) for path in own}, found


@pytest.mark.requirement("R27")
def test_no_key_of_the_caller_is_in_its_reach(company: Team) -> None:
    program = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
if sys.argv[1] == "add":
    if libc.syscall(numbers[1], 1, None) == -1 or \\
       libc.syscall(numbers[0], b"user", b"amux-test", b"SECRET", 6, -3) == -1:
        os._exit(9)
    os.execvp(sys.argv[2], sys.argv[2:])
found = libc.syscall(numbers[1], 10, -3, b"user", b"amux-test", 0)
room = ctypes.create_string_buffer(16)
libc.syscall(numbers[1], 11, found, room, 16)
print("FOUND", found, room.value)
"""
    script = company.folder / "key.py"
    script.write_text(program)
    company.alice.write(".do", f"{PYTHON} {script} find\n")
    words = ("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    done = subprocess.run(
        [sys.executable, str(script), "add", *company.argv(*words, "--prompt", "x")],
        env=company.environment, cwd=company.work, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode == 9:
        pytest.skip("this kernel keeps no keys")
    assert done.returncode == 0, done.stderr
    assert "FOUND -1" in (company.alice.home / "out").read_text()


@pytest.mark.requirement("R27", "R28")
def test_a_umask_of_nothing_opens_nothing(company: Team) -> None:
    before = os.umask(0)
    try:
        with company.living() as living:
            modes = {
                path.relative_to(living.run.parent).as_posix().replace(living.session, "run"): (
                    stat.S_IMODE(path.lstat().st_mode), path.lstat().st_uid,
                )
                for path in [living.run, *living.run.rglob("*")]
            }  # fmt: skip
            session = company.hub.home / "sessions" / living.session
            private = [stat.S_IMODE(path.stat().st_mode) for path in session.iterdir()]
            base = stat.S_IMODE(living.run.parent.stat().st_mode)
    finally:
        os.umask(before)
    alice = company.alice.uid
    memory = "run/agent-config/memory"
    assert modes.pop("run/files/subagent.json") == (0o400, alice)
    assert modes == {
        "run": (0o711, 0), "run/files": (0o711, 0), "run/agent-config": (0o711, 0),
        memory: (0o755, 0), f"{memory}/amux": (0o555, 0),
        f"{memory}/connection.json": (0o400, alice), "run/tmp": (0o700, alice),
    }  # fmt: skip
    assert base == 0o711
    assert not [mode for mode in private if mode & 0o077]


# --- a home that waits for root ------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_shadow(path: Path) -> None:
    path.symlink_to("/etc/shadow")


def folder(path: Path) -> None:
    path.mkdir()


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.requirement("R27", "R31")
@pytest.mark.parametrize("place", ["home", "work"])
@pytest.mark.parametrize("trap", [fifo, link_to_shadow, folder, link_to_device])
def test_what_waits_in_place_of_a_settings_file_neither_holds_a_launch_nor_is_read_by_root(
    trap: Callable[[Path], None], place: str, company: Team
) -> None:
    work = company.folder / f"work-{trap.__name__}-{place}"
    work.mkdir(mode=0o755)
    where = (company.alice.home if place == "home" else work) / ".claude"
    where.mkdir(mode=0o755)
    trap(where / "settings.json")
    began = time.monotonic()
    said = company.does("true\n", "--cwd", str(work))
    assert time.monotonic() - began < 15
    assert said == ""
    session = company.sessions()[0]["session"]
    assert "root" not in json.dumps(company.show(session)["timeline"])


@pytest.mark.requirement("R27")
def test_a_run_full_of_traps_is_removed_and_nothing_beyond_it(company: Team) -> None:
    victim = company.folder / "victim"
    victim.mkdir(mode=0o755, exist_ok=True)
    (victim / "kept").write_text("kept")
    (victim / "kept").chmod(0o644)
    hard = company.folder / "root-file"
    hard.write_text("kept")
    hard.chmod(0o666)  # so that protected_hardlinks lets anybody give it another name
    script = f"""
cd "$TMPDIR"
ln -s {victim} link; ln -s / root; ln -s {victim}/kept file-link
ln {hard} hard 2>/dev/null
mkfifo pipe; mkdir closed; touch closed/x; chmod 000 closed
mkdir -p "$(printf 'a/%.0s' $(seq 200))"; ln -s {victim} a/a/a/link
touch "$(printf 'new\\nline')" -- -rf
{PYTHON} - <<'EOF'
import os, socket
socket.socket(socket.AF_UNIX).bind("sock")
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
os.symlink("{victim}", "deep")
EOF
ls -la; chmod 000 .
"""
    said = company.does(script)
    assert "link" in said
    assert (victim / "kept").read_text() == "kept"
    assert (hard.read_text(), hard.stat().st_uid, hard.stat().st_nlink) == ("kept", 0, 1)
    assert stat.S_IMODE(hard.stat().st_mode) == 0o666


STAYS = {
    "in the background": "sleep 300 &\n",
    "in a session of its own": "setsid sleep 300 &\n",
    "deaf to requests": f"{PYTHON} -c 'import signal, time; signal.signal(15, signal.SIG_IGN); "
    "time.sleep(300)' &\n",
    "hidden from its user": f"setsid {PYTHON} -c 'import ctypes, time; "
    "ctypes.CDLL(None).prctl(4, 0); time.sleep(300)' &\n",
    "stopped": "setsid sleep 300 & kill -STOP $!\n",
    "without its environment": "env -i setsid sleep 300 &\n",
    "of parents that ended": f"env -i setsid {PYTHON} -c 'import os, time; "
    "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep(300)' &\n",
}


@pytest.mark.requirement("R27", "R3")
@pytest.mark.parametrize("how", STAYS)
def test_no_process_of_a_run_outlives_it(how: str, company: Team) -> None:
    company.does(f"{STAYS[how]}\nsleep 0.3\n".replace("&\n", ">/dev/null 2>&1 </dev/null &\n"))
    assert company.alice.processes() == []


@pytest.mark.requirement("R27")
def test_a_process_of_the_users_own_is_none_of_a_runs(company: Team) -> None:
    own = company.alice.start("import time; time.sleep(60)")
    try:
        company.does("true\n")
        assert own.poll() is None
    finally:
        own.kill()
        own.communicate()


@pytest.mark.requirement("R27", "R3", "M67")
def test_a_run_whose_disk_fills_while_it_is_made_leaves_nothing(company: Team) -> None:
    folder, names = company.folder / "filling", {}
    for name, text in (
        ("long.json", json.dumps({"n": "x" * 3_900_000})),
        ("long.md", "y" * 3_900_000),
    ):
        names[name] = company.folder / name
        names[name].write_text(text)
    native = ("--settings", str(names["long.json"]),
              "--append-system-prompt-file", str(names["long.md"]))  # fmt: skip
    words = ("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
    try:
        # Enough by the look of it; not for two files of nearly four million bytes and all else.
        with mounts.small_disk(folder, mode="711", size=8 * 1024 * 1024 + 4096):
            company.configure(run_dir=str(folder / "runs"))
            refusal = company.refused(*words, "--prompt", "x", "--", *native)
            assert (refusal["code"], refusal["details"]["step"]) == ("launch_refused", "isolation")
            assert list((folder / "runs").iterdir()) == []
    finally:
        company.configure()


@pytest.mark.requirement("R27", "run-12")
def test_an_agent_dies_with_its_launcher_and_what_it_started_with_the_next_one(
    company: Team,
) -> None:
    with company.living() as living:
        told = Path(f"/proc/{living.pid}/status").read_text()
        agent = int(told.partition("PPid:")[2].split()[0])
        assert agent in company.alice.processes()
        living.launcher.kill()
        living.launcher.wait()
        deadline = time.monotonic() + 10
        while agent in company.alice.processes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        company.alice.write(".do", "true\n")
        words = ("run", "claude", "--isolation", "linux-dac", "--user", company.alice.name)
        assert company.amux(*words, "--prompt", "x").returncode == 0
        assert company.alice.processes() == []


@pytest.mark.requirement("R27", "R3")
def test_what_could_not_be_removed_stops_no_launch_and_is_removed_by_a_later_one(
    company: Team,
) -> None:
    with company.living() as living:
        left = living.run
        living.launcher.kill()
        living.launcher.wait()
    with mounts.small_disk(left / "tmp" / "mounted"):
        company.does("true\n")
        assert left.exists()
        assert company.left_over() != []
    company.does("true\n")
    assert not left.exists()
