"""A fake agent: a small program that says it is Claude Code, for what a real one cannot be made do.

Rule 1: what it does stands in its environment: FAKE_VERSION and FAKE_RUN.
Rule 2: how it was started is written to the file FAKE_SEEN, one JSON object a start: a test reads
        there what reached the agent.
Rule 3: it is no stand-in for an agent's behaviour: what real agents do is tested with those.
"""

import json
import stat
import sys
from pathlib import Path
from typing import Any

_PROGRAM = """
import json, os, signal, sys, time
mode = os.environ.get("FAKE_VERSION" if "--version" in sys.argv else "FAKE_RUN", "")
if "--version" in sys.argv:
    if mode == "hang":
        time.sleep(60)
    odd = {"": "2.1.332 (fake)", "nonsense": "\\x00no number\\xff", "flood": "x" * 1000000}
    print(odd.get(mode, mode))
    sys.exit(mode == "die")
credential = os.environ.get("AMUX_CREDENTIAL_FILE", "")
seen = {
    "argv": sys.argv[1:],
    "cwd": os.getcwd(),
    "amux": {k: v for k, v in os.environ.items() if k.startswith("AMUX_")},
    "own_memory_off": os.environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY"),
    "credential": open(credential).read().strip() if credential else None,
    "mode": os.stat(credential).st_mode & 0o777 if credential else None,
    "pid": os.getpid(),
    "stdin": sys.stdin.read() if "-p" in sys.argv else None,
    "is_foreground": os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp(),
}
with open(os.environ["FAKE_SEEN"], "a") as file:
    file.write(json.dumps(seen) + "\\n")
def say(**what):
    print(json.dumps(what), flush=True)
def answer():
    say(type="system", subtype="init", session_id="native-1")
    say(type="assistant", message={"content": [
        {"type": "tool_use", "id": "1", "name": "mcp__amux__memory_upsert",
         "input": {"path": "a.md", "content": "WRITTEN", "expected_revision": "absent"}}]})
    say(type="user", message={"content": [
        {"type": "tool_result", "tool_use_id": "1", "content": "{}"}]})
    say(type="result", result="the answer\\n")
match mode:
    case "" :
        answer()
    case "die":
        sys.exit(9)
    case "die at once":
        os.kill(os.getpid(), signal.SIGKILL)
    case "close":
        os.close(1)
        time.sleep(60)
    case "garbage":
        sys.stdout.buffer.write(b"\\xff\\x00{[\\n" * 1000 + b"{" * 100000)
    case "fail":
        say(type="result", is_error=True, result="no such model")
        sys.exit(1)
    case "stay":
        answer()
        sys.stdout.flush()
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)
    case "terminal":
        print("ready", flush=True)
        for line in sys.stdin:
            if line.strip() == "quit":
                sys.exit(3)
            if line.strip() == "raw":
                import tty
                tty.setraw(0)
                os.kill(os.getpid(), signal.SIGKILL)
            if line.strip() == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
                print("continued", flush=True)
"""


def install(folder: Path, name: str = "claude") -> Path:
    """Make the program in a folder, under the name of an agent; its own name says what it is."""
    program = folder / "fake-agent"
    program.write_text(f"#!{sys.executable} -SI\n{_PROGRAM}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    command = folder / name
    command.symlink_to(program)
    return command


def seen(path: Path) -> list[dict[str, Any]]:
    """Give how it was started, each time."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def is_alive(pid: int) -> bool:
    """Tell whether a process lives; one that nobody collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def install_for_others(folder: Path) -> Path:
    """Make the program for a user who can run the system's Python only, and has no environment.

    FAKE_RUN and FAKE_SEEN stand in a file `.fake` of the home instead.
    """
    program = folder / "fake-agent-of-others"
    head = """
import json, os
with open(os.path.expanduser("~/.fake")) as file:
    os.environ.update(json.load(file))
"""
    program.write_text(f"#!/usr/bin/python3 -SI\n{head}{_PROGRAM}")
    program.chmod(0o755)
    command = folder / "claude"
    command.symlink_to(program)
    return command
