"""Every command line that the pages show is run, against a real Hub in a home of its own."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amux.surface.cli.verbs import VERBS
from tests.docs import task_examples
from tests.docs.shell import Shell
from tests.support import fake_agent

ROOT = Path(__file__).parents[2]
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
BUILDS = ("make run", "make test")  # tested below, and by whoever reads this
IN_FOREGROUND = {"amux hub serve": 5}  # a Hub runs already, so it refuses as busy

SESSION = "s-3f9a2c1b04de"  # of the examples
ROW = {"summary": "totals fixed", "status": "completed", "type": "fix", "sessionId": "01"}
NOTE = {"content": "The zone was wrong.", "handoff": {"next-action": "run the tests"}}

pytestmark = pytest.mark.slow


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell with memory on and a few documents, as the examples suppose them."""
    shell = Shell(tmp_path)
    try:
        done = shell.run("amux system config set memory.enabled true && amux hub start")
        assert done.returncode == 0, done.stderr
        for path in ("MEMORY.md", "notes/git.md", "git.md"):
            done = shell.run(f"echo '# Git' | amux memory upsert {path} --expected-revision absent")
            assert done.returncode == 0, done.stderr
        for name in ("alice", "ci"):
            assert shell.run(f"amux principal add {name}").returncode == 0
        (shell.root / "memory/global/notes/link.md").symlink_to("git.md")
        (shell.cwd / "entry.md").write_text("# Memory\n", encoding="utf-8")
        # The journal is of a workspace: a repository is one.
        (shell.cwd / ".git").mkdir()
        (shell.home / "work").mkdir()
        for name, arguments in (("row.json", {"entry": ROW}), ("note.json", NOTE)):
            (shell.cwd / name).write_text(json.dumps(arguments), encoding="utf-8")
        # Real agents have tests of their own; of these only the command lines are shown.
        for agent in ("claude", "pi"):
            (shell.home / agent).mkdir()
            fake_agent.install(shell.home / agent, agent)
            shell.environment["PATH"] = f"{shell.home / agent}:{shell.environment['PATH']}"
        shell.environment["FAKE_SEEN"] = str(tmp_path / "seen")
        for folder in (".codex", ".config/fish/completions", ".local/share/man/man1"):
            (shell.home / folder).mkdir(parents=True)
        yield shell
    finally:
        shell.run("amux hub stop")


def filled_in(shell: Shell, command: str) -> str:
    """Put the revision where an example says R, and forget first what it will create."""
    path = next((word for word in command.split() if word.endswith(".md")), "")
    if command.endswith("--expected-revision absent"):
        path = re.findall(r"\S+\.md", command)[-1]
        (shell.root / "memory/global" / path).unlink()
    if command.startswith("amux memory move"):
        (shell.root / "memory/global" / command.split()[4]).unlink()
    if command.startswith("amux task"):
        return task_examples.prepare(shell, command)
    if command.endswith(" ID"):
        made = json.loads(shell.run("amux token create --kind person").stdout)
        return command.replace(" ID", f" {made['id']}")
    if command.startswith(("amux resume", "amux session show", "amux session remove")):
        started = shell.run("amux run claude --name release --prompt hello")
        assert started.returncode == 0, started.stderr
        (session,) = json.loads(shell.run("amux session list").stdout)["sessions"]
        return command.replace(SESSION, session["session"])
    if re.search(r"--expected-revision R\b", command):
        shown = json.loads(shell.run(f"amux memory show {path}").stdout)
        return command.replace("--expected-revision R", f"--expected-revision {shown['revision']}")
    return command


@pytest.mark.requirement("M52", "M49")
@pytest.mark.parametrize("name", VERBS)
def test_the_examples_of_a_verb_work(shell: Shell, name: str) -> None:
    for command, _about in VERBS[name].examples:
        shell.run("rm -rf ~/.amux/sessions")
        done = shell.run(filled_in(shell, command))
        assert done.returncode == IN_FOREGROUND.get(command, 0), (command, done.stderr)


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/identity.md", "docs/journal.md", "docs/memory.md", "docs/remote.md"],
)
def test_the_command_lines_of_a_page_work(shell: Shell, page: str) -> None:
    lines = [
        line
        for block in SHELL_BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
        for line in block.splitlines()
        if not line.startswith(BUILDS)
    ]
    assert lines
    for line in lines:
        done = shell.run(line)
        assert done.returncode == 0, (line, done.stderr)


def test_the_transcript_is_what_a_person_sees(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    blocks = CONSOLE_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert blocks
    try:
        for step in re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            shown = shell.on_a_terminal(command).replace(str(shell.home), "~")
            pattern = ".*?".join(re.escape(part) for part in expected.rstrip("\n").split("…"))
            shown = re.sub(r"[ ]+$", "", shown.rstrip("\n"), flags=re.MULTILINE)
            assert re.fullmatch(pattern, shown, re.DOTALL), (command, shown)
    finally:
        shell.run("amux hub stop")


@pytest.mark.requirement("M53", "M6")
def test_make_run_starts_a_hub_says_how_to_connect_and_ends(tmp_path: Path) -> None:
    checkout = tmp_path / "a check'out"
    checkout.mkdir()
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    (checkout / ".venv").symlink_to(sys.prefix)
    shell = Shell(tmp_path / "person")
    script = ["sh", "scripts/run.sh"]
    try:
        for _ in range(2):
            done = subprocess.run(
                script,
                cwd=checkout,
                env=shell.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            root = checkout / ".run/amux"
            assert (root / "memory/global/MEMORY.md").read_text(encoding="utf-8") in done.stdout
            assert json.dumps(str(root)) in done.stdout
            assert "[mcp_servers.amux]" in done.stdout
            assert "make stop" in done.stdout
        first_line = re.search(r"^  (AMUX_HOME=.*)$", done.stdout, re.MULTILINE)
        assert first_line is not None
        assert shell.run(first_line[1]).returncode == 0
    finally:
        shell.run(f'AMUX_HOME="{checkout}/.run/amux" amux hub stop')
    assert not (checkout / ".run/amux/run/hub.sock").exists()


@pytest.mark.requirement("M1", "M42", "M43", "M15")
def test_after_use_the_root_holds_the_documents_and_what_the_page_names(shell: Shell) -> None:
    (shell.root / "memory/global/notes/link.md").unlink()
    for line in ("amux memory search git", "amux memory list", "amux memory show notes/git.md"):
        assert shell.run(line).returncode == 0
    found = {
        path.relative_to(shell.root).as_posix()
        for path in shell.root.rglob("*")
        if not path.is_dir()
    }
    documents = {f"memory/global/{path}" for path in ("MEMORY.md", "git.md", "notes/git.md")}
    assert found == documents | {
        "layout",
        "hub/settings.json",
        "hub/identity.json",
        "hub/audit.jsonl",
        "hub/secret",
        *(f"run/hub.{kind}" for kind in ("sock", "lock", "pid", "log")),
    }
    page = (ROOT / "docs/memory.md").read_text(encoding="utf-8")
    for name in {path.split("/")[0] for path in found}:
        assert re.search(rf"^  {name}\b", page, re.MULTILINE), name
