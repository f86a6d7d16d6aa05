"""Becoming another user for good, and then an agent: a script, imported by nobody (R27).

Rule 1: it is started by root with an empty environment and one descriptor, a file in memory: what
        to become and to start stands there, and what went wrong is written there instead.
Rule 2: all that root had is given up, and that is looked at, before the agent's program starts:
        ids, groups, capabilities, keys, descriptors, the way back.
Rule 3: the agent dies with its launcher: a launcher that is killed tidies up nothing.
"""

import ctypes
import fcntl
import json
import os
import signal
import sys
import termios
from typing import Any

NO_NEW_PRIVILEGES, DEATH_SIGNAL, DROP_BOUND, KEEP_CAPABILITIES = 38, 1, 24, 8
AMBIENT, CLEAR_ALL = 47, 4
JOIN_SESSION = 1
KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "armv7l": 311, "i686": 288}
CAPABILITIES_MAX = 64
CAPABILITIES = (b"CapInh", b"CapPrm", b"CapEff", b"CapAmb", b"CapBnd")
FAILED = 125
libc = ctypes.CDLL(None, use_errno=True)


def become(asked: dict[str, Any]) -> None:
    """Give up all that root has."""
    launcher = os.getppid()
    number = KEYCTL.get(os.uname().machine)
    if number is not None:  # a ring of its own: root's keys would be in reach of the agent
        libc.syscall(ctypes.c_long(number), ctypes.c_long(JOIN_SESSION), None)
    libc.prctl(KEEP_CAPABILITIES, 0, 0, 0, 0)
    libc.prctl(AMBIENT, CLEAR_ALL, 0, 0, 0)
    for one in range(CAPABILITIES_MAX):
        libc.prctl(DROP_BOUND, one, 0, 0, 0)
    clear_inheritable()
    os.setgroups(asked["groups"])
    os.setresgid(asked["gid"], asked["gid"], asked["gid"])
    os.setresuid(asked["uid"], asked["uid"], asked["uid"])
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.prctl(DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != launcher:
        raise PermissionError("the launcher is gone")
    os.umask(0o077)


def clear_inheritable() -> None:
    """Take away what a program that is started could inherit of root's capabilities."""
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    if libc.capget(head, data) == 0:
        data[2] = data[5] = 0
        libc.capset(head, data)


def require_become(asked: dict[str, Any]) -> None:
    """Look whether nothing is left, as the kernel tells it."""
    uid, gid = asked["uid"], asked["gid"]
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or uid == 0:
        raise PermissionError("the ids are not the user's")
    if sorted(os.getgroups()) != sorted(asked["groups"]):
        raise PermissionError("the groups are not the user's")
    # As bytes: this interpreter may lie where the user cannot read, and can load no more modules.
    with open("/proc/self/status", "rb") as file:
        told = dict(line.split(b":", 1) for line in file if b":" in line)
    left = [name for name in CAPABILITIES if int(told[name].strip(), 16)]
    if left or told[b"NoNewPrivs"].strip() != b"1":
        raise PermissionError("capabilities are left")


def start(asked: dict[str, Any]) -> None:
    """Become the program; returns never."""
    if asked["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["cwd"])
    # This interpreter ignores some, its starter perhaps others; its heir begins with none.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(asked["argv"][0], asked["argv"], asked["environment"])


def main() -> None:
    """Read what is asked for, and do it; leaves the reason where it cannot be done."""
    fd = int(sys.argv[1])
    os.set_inheritable(fd, False)
    asked = json.loads(os.pread(fd, os.fstat(fd).st_size, 0))
    step = "isolation"
    try:
        become(asked)
        require_become(asked)
        step = "start"
        start(asked)
    except (OSError, ValueError, LookupError, ImportError) as error:
        said = {"step": step, "cause": type(error).__name__, "what": str(error)}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(said).encode("utf-8"), 0)
        os._exit(FAILED)


if __name__ == "__main__":
    main()
