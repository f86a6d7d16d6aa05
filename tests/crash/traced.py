"""Running the driver under strace, and reading what it did to the disk.

Only strace knows what the process really asked of the kernel; our own hooks would not see a call
that goes around them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DRIVER = Path(__file__).with_name("driver.py")
CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,sync_file_range,renameat,renameat2,rename"
CALLS += ",unlinkat,unlink,rmdir,mkdirat,mkdir,linkat,link,symlinkat"
RECORDING = ("-f", "-xx", "-y", "-s", "4000000")
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?.*$")
_BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HANDLE = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One thing that was done to the disk, or one line of the driver's."""

    verb: str
    """`mark`, `mkdir`, `create`, `truncate`, `write`, `sync-begin`, `sync-end`, `rename`,
    `exchange` or `unlink`."""
    path: str = ""
    other: str = ""
    data: bytes = b""
    mark: list[object] = field(default_factory=list)
    call: str = ""
    nth: int = 0
    """The system call that did it, and which one of its name it was."""


def strace() -> str:
    """Find strace; a machine without it proves nothing, and must say so."""
    found = shutil.which("strace")
    assert found, "strace is missing: install it (apt-get install strace), crash tests need it"
    return found


def run_driver(
    root: Path, marks: Path, *, seed: int, calls: int, writers: int = 1, bug: str = "",
    strace_options: list[str], driver: Path = DRIVER,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run the driver once, under strace."""
    return subprocess.run(
        [
            strace(), "-qq", *strace_options, sys.executable, str(driver), str(root),
            str(marks), str(seed), str(calls), str(writers), *([bug] if bug else []),
        ],
        capture_output=True, check=False,
        env={"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def record(
    place: Path,
    *,
    seed: int,
    calls: int,
    writers: int = 1,
    bug: str = "",
    driver: Path = DRIVER,
    name: str = "memory",
) -> tuple[Path, list[Op]]:
    """Run the driver in an empty place; give its root and all that it did there, in order."""
    root, marks, log = place / name, place / "marks", place / "log"
    done = run_driver(
        root, marks, seed=seed, calls=calls, writers=writers, bug=bug, driver=driver,
        strace_options=[*RECORDING, "-o", str(log), f"-etrace={CALLS}"],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return root, list(operations(log, str(root), str(marks)))


def marks_of(path: Path) -> list[list[object]]:
    """Read the driver's lines; a last one that was cut short by a kill is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def operations(log: Path, root: str, marks: str) -> Iterator[Op]:
    """Read what a log of strace says was done below a root, in order."""
    counts: dict[str, int] = {}
    begun: dict[str, tuple[str, int]] = {}
    with log.open(encoding="ascii") as lines:
        for line in lines:
            assert '"...' not in line, "strace has cut a string: what was written is not known"
            if found := _BEGUN.match(line):
                pid, call, arguments = found.groups()
                counts[call] = counts.get(call, 0) + 1
                begun[pid] = (arguments, counts[call])
                if call in {"fsync", "fdatasync"}:
                    yield from _sync(arguments, "sync-begin", root, call, counts[call])
                continue
            if found := _ENDED.match(line):
                pid, call, rest = found.groups()
                arguments, nth = begun.pop(pid)
                whole = _LINE.match(f"{pid} {call}({arguments}{rest}".rstrip())
                assert whole, line
                was_split = True
            else:
                whole = _LINE.match(line)
                if whole is None:
                    continue
                call = whole[2]
                counts[call] = counts.get(call, 0) + 1
                nth, was_split = counts[call], False
            if int(whole[4]) >= 0:
                yield from _op(call, whole[3], int(whole[4]), root, marks, nth, was_split)


def _op(
    call: str, arguments: str, answer: int, root: str, marks: str, nth: int, was_split: bool
) -> Iterator[Op]:
    handles = [_text(found[1]) for found in _HANDLE.finditer(arguments)]
    texts = [_text(found) for found in _TEXT.findall(_HANDLE.sub("", arguments))]
    at = handles[0] if handles else ""
    if call == "write" and at == marks:
        yield Op(verb="mark", mark=json.loads(texts[0]))
        return
    if call in {"fsync", "fdatasync"}:
        if not was_split:
            yield from _sync(arguments, "sync-begin", root, call, nth)
        yield from _sync(arguments, "sync-end", root, call, nth)
        return
    path = os.path.normpath(os.path.join(at, texts[0])) if texts and call != "write" else at
    if not (path == root or path.startswith(f"{root}/")):
        return
    other = (
        os.path.normpath(os.path.join(handles[-1] if handles else "", texts[-1])) if texts else ""
    )
    verb = _verb(call, arguments)
    if verb == "write":
        data = texts[0].encode("utf-8", "surrogateescape")[:answer]
        yield Op(verb=verb, path=path, data=data, call=call, nth=nth)
    elif verb:
        yield Op(verb=verb, path=path, other=other, call=call, nth=nth)


def _verb(call: str, arguments: str) -> str:
    """Name what a call does to the disk; a call that the model does not know is a failure."""
    match call:
        case "openat":
            if "O_CREAT" not in arguments:
                return ""
            return "truncate" if "O_TRUNC" in arguments else "create"
        case "renameat" | "renameat2" | "rename":
            return "exchange" if "RENAME_EXCHANGE" in arguments else "rename"
        case "unlinkat" | "unlink" | "rmdir":
            return "unlink"
        case "mkdirat" | "mkdir":
            return "mkdir"
        case "write":
            return "write"
    raise AssertionError(f"the model does not know {call}")


def _sync(arguments: str, verb: str, root: str, call: str, nth: int) -> Iterator[Op]:
    found = _HANDLE.search(arguments)
    assert found
    path = _text(found[1])
    is_ours = path == os.path.dirname(root) or path == root or path.startswith(f"{root}/")
    if is_ours and not found[2]:
        yield Op(verb=verb, path=path, call=call, nth=nth)


def _text(escaped: str) -> str:
    return bytes.fromhex(escaped.replace("\\x", "")).decode("utf-8", "surrogateescape")
