"""What somebody else of this machine can do to a run that lives: nothing.

Rule 1: each case is a program that runs as the other user and says what it got; the same programs
        are run as root first, where they must get it: an attack that never works proves nothing.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import users
from tests.support.team import Living, Team
from tests.support.users import Other

pytestmark = pytest.mark.slow
HEAD = """
import ctypes, fcntl, json, os, socket, sys, termios
what = json.loads(sys.argv[1])
pid, run, memory, file = what["pid"], what["run"], what["memory"], what["file"]
libc = ctypes.CDLL(None, use_errno=True)
def checked(answer):
    if answer == -1 or answer is None:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
def read(path):
    return open(path, "rb").read()
def got(thing):
    print("GOT", repr(thing)[:300])
"""

# What is read, and what root finds in it.
READS = {
    "the list of runs": "got(os.listdir(os.path.dirname(run)))",
    "what is in a run": "got(os.listdir(run))",
    "what is in its configuration": "got(os.listdir(os.path.dirname(memory)))",
    "the connection file": "got(read(file))",
    "the connection file by the root of the process": "got(read(f'/proc/{pid}/root{file}'))",
    "the connection file by the directory of the process":
        "got(read(f'/proc/{pid}/cwd/' + '../' * 9 + file))",
    "the files of the plan": "got([read(f'{run}/files/{n}') for n in what['files']])",
    "the temporary directory": "got(os.listdir(run + '/tmp'))",
    "the environment of the process": "got(read(f'/proc/{pid}/environ'))",
    "the memory of the process": """
maps = read(f'/proc/{pid}/maps').decode().splitlines()
start = int(next(one for one in maps if '[stack]' in one).split('-')[0], 16)
with open(f'/proc/{pid}/mem', 'rb', 0) as memory_of: memory_of.seek(start); got(memory_of.read(64))
""",
    "the memory of the process by process_vm_readv": """
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
near = ctypes.create_string_buffer(16)
mine = Vector(ctypes.cast(near, ctypes.c_void_p), 16)
theirs = Vector(what["address"], 16)
got(checked(libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)))
""",
    "the process as a debugger": """
checked(libc.ptrace(16, pid, None, None)); os.waitpid(pid, 0)
libc.ptrace(17, pid, None, None); got('attached')
""",
    "the descriptors of the process": "got(os.listdir(f'/proc/{pid}/fd'))",
    "a descriptor of the process": """
got(checked(libc.syscall(438, os.pidfd_open(pid), 0, 0)))
""",
    "the root of the Hub": "got(os.listdir(what['home']))",
    "the memory of the Hub": "got(os.listdir(what['home'] + '/memory/users'))",
    "the record of the session":
        "got(read(what['home'] + '/sessions/' + what['session'] + '/session.json'))",
    "the timeline of the session":
        "got(read(what['home'] + '/sessions/' + what['session'] + '/timeline.jsonl'))",
    "the owner's socket": """
with socket.socket(socket.AF_UNIX) as one: one.connect(what['home'] + '/run/hub.sock'); got(one)
""",
    "the run directory by a watch": """
got(checked(libc.inotify_add_watch(checked(libc.inotify_init()), run.encode(), 0xfff)))
""",
    "the home of the user": "got(os.listdir(what['user_home']))",
}  # fmt: skip

# What is changed; never run as root, who could.
WRITES = {
    "the run directory is renamed": "os.rename(run, run + 'x')",
    "the run directory is replaced by a link":
        "os.rename(run, '/tmp/gone'); os.symlink('/tmp', run)",
    "another run is made beforehand": "os.mkdir(os.path.dirname(run) + '/s-0123456789ab')",
    "a link waits where a run will be":
        "os.symlink('/etc', os.path.dirname(run) + '/s-0123456789ab')",
    "a file is put beside the command line": "open(memory + '/python3', 'w')",
    "the command line is removed": "os.unlink(memory + '/amux')",
    "the command line is replaced":
        "open('/tmp/evil-amux', 'w'); os.rename('/tmp/evil-amux', memory + '/amux')",
    "the command line is written": "open(memory + '/amux', 'r+b')",
    "the command line is made writable": "os.chmod(memory + '/amux', 0o777)",
    "the connection file is removed": "os.unlink(file)",
    "the connection file is given another name": "os.link(file, what['own_home'] + '/stolen')",
    "the command line is given another name":
        "os.link(memory + '/amux', what['own_home'] + '/mine'); os.unlink(memory + '/amux')",
    "the connection file is made readable": "os.chmod(file, 0o644)",
    "a file is put into the temporary directory": "open(run + '/tmp/x', 'w')",
    "a pipe waits in the temporary directory": "os.mkfifo(run + '/tmp/x')",
    "the run directory is mounted over":
        "checked(libc.mount(b'/tmp', run.encode(), None, 4096, None))",
    "the agent is killed": "os.kill(pid, 9)",
    "the agent is stopped": "os.kill(pid, 19)",
    "the launcher is killed": "os.kill(what['launcher'], 9)",
    "the limits of the agent are changed":
        "import resource; resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))",
    "the owner's socket is replaced":
        "os.unlink(what['home'] + '/run/hub.sock')",
    "the shared socket is replaced": "os.unlink(what['shared'])",
}  # fmt: skip
OF_THE_USER = {  # the run's own user may do these to itself, and not to what is root's
    "the run directory is renamed", "the run directory is replaced by a link",
    "another run is made beforehand", "a link waits where a run will be",
    "a file is put beside the command line", "the command line is removed",
    "the command line is replaced", "the command line is written",
    "the command line is made writable", "the connection file is removed",
    "the command line is given another name", "the run directory is mounted over",
    "the launcher is killed", "the owner's socket is replaced", "the shared socket is replaced",
}  # fmt: skip
OF_ROOT = {
    "the list of runs", "what is in a run", "what is in its configuration",
    "the root of the Hub", "the memory of the Hub", "the record of the session",
    "the timeline of the session", "the owner's socket", "the run directory by a watch",
}  # fmt: skip


@pytest.fixture(scope="module")
def company(company: Team) -> Team:
    company.shell()
    company.does("echo 'of alice' | amux memory upsert of.md --expected-revision absent\n")
    return company


@pytest.fixture(scope="module")
def living(company: Team) -> Iterator[Living]:
    with company.living() as found:
        yield found


def tried(program: str, who: Other | None, company: Team, living: Living) -> str:
    """Run an attack as somebody, or as root; gives what it said."""
    shared = company.hub.ask("status")["shared_socket"]
    stack = [
        line
        for line in Path(f"/proc/{living.pid}/maps").read_text().splitlines()
        if "[stack]" in line
    ]
    what = {
        "pid": living.pid,
        "run": str(living.run),
        "memory": str(living.memory),
        "file": str(living.connection_file),
        "files": [path.name for path in (living.run / "files").iterdir()],
        "home": str(company.hub.home),
        "session": living.session,
        "user_home": str(company.alice.home),
        "own_home": str(who.home) if who else "/root",
        "launcher": living.launcher.pid,
        "shared": shared["path"],
        "address": int(stack[0].split("-")[0], 16),
    }
    whole = f"{HEAD}{program}\n"
    if who is not None:
        return who.python(whole, json.dumps(what))
    done = subprocess.run(
        [users.PYTHON, "-IS", "-c", whole, json.dumps(what)],
        capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).decode()


def refused(said: str) -> bool:
    """Tell whether the kernel refused, and for the reason that it should."""
    kinds = ("PermissionError", "FileNotFoundError", "ProcessLookupError", "FileExistsError")
    return "GOT" not in said and said.strip().splitlines()[-1].startswith(kinds)


@pytest.mark.requirement("R29", "R27", "run-10")
@pytest.mark.parametrize("who", ["bob", "eve"])
@pytest.mark.parametrize("name", READS)
def test_nobody_else_reads_a_run(name: str, who: str, company: Team, living: Living) -> None:
    said = tried(READS[name], None, company, living)
    assert "GOT" in said, said  # root does: the attack is one
    said = tried(READS[name], getattr(company, who), company, living)
    assert refused(said), said
    assert living.connection["credential"] not in said


@pytest.mark.requirement("R29", "R27", "run-10")
@pytest.mark.parametrize("who", ["bob", "eve"])
@pytest.mark.parametrize("name", WRITES)
def test_nobody_else_changes_a_run(name: str, who: str, company: Team, living: Living) -> None:
    said = tried(WRITES[name], getattr(company, who), company, living)
    assert refused(said), said
    assert living.launcher.poll() is None
    assert Path(f"/proc/{living.pid}").exists()


@pytest.mark.requirement("R27", "R28")
@pytest.mark.parametrize("name", sorted(OF_THE_USER))
def test_the_runs_own_user_changes_nothing_that_is_roots(
    name: str, company: Team, living: Living
) -> None:
    said = tried(WRITES[name], company.alice, company, living)
    assert refused(said), said
    assert living.run.is_dir()


@pytest.mark.requirement("R27", "R28")
@pytest.mark.parametrize("name", sorted(OF_ROOT))
def test_the_runs_own_user_reads_nothing_that_is_roots(
    name: str, company: Team, living: Living
) -> None:
    said = tried(READS[name], company.alice, company, living)
    assert refused(said), said


# --- the Hub, and a stolen credential ------------------------------------------------------------

ASK = """
def ask(target, arguments, path=None, **headers):
    body = json.dumps(arguments).encode()
    head = [f"POST {target} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            f"Content-Length: {len(body)}", "Connection: close"]
    head += [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        one.connect(path or what["shared"])
        one.sendall("\\r\\n".join([*head, "", ""]).encode() + body)
        said = b""
        while chunk := one.recv(65536): said += chunk
    print("GOT", said.partition(b"\\r\\n\\r\\n")[2].decode())
"""


def asked(
    call: str, who: Other, company: Team, living: Living, *, fails: bool = True
) -> dict[str, object]:
    said = tried(ASK + call, who, company, living)
    assert said.startswith("GOT"), said
    found: dict[str, object] = json.loads(said[4:])
    assert ("error" in found) is fails, found
    return found


def code(found: dict[str, object]) -> str:
    error = found["error"]
    assert isinstance(error, dict)
    return str(error["code"])


def stolen(living: Living) -> str:
    found = living.connection
    return f"Authorization='Bearer {found['credential']}', Amux_Memory_Binding='{found['binding']}'"


GET = 'ask("/v1/memory/get", {"path": "MEMORY.md"}'


@pytest.mark.requirement("R29", "M46", "run-10")
@pytest.mark.parametrize("who", ["bob", "eve"])
@pytest.mark.parametrize(
    "call",
    [
        GET + ", {stolen})",
        'ask("/v1/memory/list", {}, {stolen})',
        'ask("/v1/memory/forget", {"path": "a.md", "expected_revision": "absent"}, {stolen})',
        'ask("/v1/bindings/renew", {"session": what["session"]}, {stolen})',
    ],
    ids=["get", "list", "forget", "renew"],
)
def test_a_stolen_credential_is_of_no_use_to_another_uid(
    call: str, who: str, company: Team, living: Living
) -> None:
    found = asked(call.replace("{stolen}", stolen(living)), getattr(company, who), company, living)
    assert code(found) == "permission_denied"


@pytest.mark.requirement("R29", "M46")
def test_the_credential_works_for_the_user_that_it_was_minted_for(
    company: Team, living: Living
) -> None:
    call = f"{GET}, {stolen(living)})"
    assert asked(call, company.alice, company, living, fails=False)["exists"] is False


@pytest.mark.requirement("R29", "M65", "M69")
def test_the_shared_socket_gives_everybody_their_own_or_nothing(
    company: Team, living: Living
) -> None:
    company.does("echo 'of alice' | amux memory upsert of.md --expected-revision absent\n",
                 owner=company.bob)  # fmt: skip
    found = asked('ask("/v1/memory/get", {"path": "of.md"})', company.bob, company, living,
                  fails=False)  # fmt: skip
    assert found["exists"] is True
    alices = f"{GET}, Amux_Memory_Binding='{living.connection['binding']}')"
    assert code(asked(alices, company.bob, company, living)) == "binding_mismatch"
    assert code(asked(GET + ")", company.eve, company, living)) == "permission_denied"


@pytest.mark.requirement("R29", "M66", "M72")
@pytest.mark.parametrize("who", ["bob", "eve"])
@pytest.mark.parametrize(
    "call",
    [
        'ask("/v1/bindings", {"session": "s", "agent": "pi", "delegate": True, "uid": UID})',
        'ask("/v1/bindings/renew", {"session": what["session"], "resume": True})',
        'ask("/v1/bindings/end", {"session": what["session"]})',
    ],
    ids=["bind", "resume", "end"],
)
def test_nobody_binds_goes_on_with_or_ends_what_is_anothers(
    call: str, who: str, company: Team, living: Living
) -> None:
    call = call.replace("UID", str(company.alice.uid))
    assert code(asked(call, getattr(company, who), company, living)) == "permission_denied"
    assert living.session in company.live_credentials()


@pytest.mark.requirement("R31", "run-11")
def test_no_list_of_processes_shows_a_secret(company: Team, living: Living) -> None:
    said = company.eve.python(
        "import glob\nfor one in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: print(open(one, 'rb').read())\n    except OSError: pass\n"
    )
    assert str(living.pid) or said
    assert "run" in said
    assert living.connection["credential"] not in said
    assert living.connection["credential"].split("_")[2] not in said
