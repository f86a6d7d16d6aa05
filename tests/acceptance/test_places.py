"""Awkward places, poor locales, and the two ways to install: rows 12 and 13, bug 37."""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import pyz
from tests.support.faces import Cli, Faces, running_faces
from tests.support.hub import RunningHub

PLACES = ["two  blanks", "quo\"te's", "a:b;c", "Lucas Costa/项目 é", "$(touch x) `id` *", "-dash\\"]
TEXT = "# Überschrift 用户\n\n“quoted” 🧀\n"
POOR = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "cp1252"}
PYTHON = sys.executable


def run(words: list[str], cwd: Path, home: Path, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "AMUX_HOME": str(home)} | POOR
    done = subprocess.run(
        words, cwd=cwd, env=environment, input=stdin, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.requirement("row-12", "bug-37", "M53", "M55")
@pytest.mark.parametrize("place", PLACES)
def test_everything_works_in_an_awkward_place_and_a_poor_locale(tmp_path: Path, place: str) -> None:
    cwd = tmp_path / place / "work"
    home = tmp_path / place / "ho me"
    cwd.mkdir(parents=True)
    amux = [PYTHON, "-m", "amux"]

    def ok(*words: str, stdin: bytes = b"") -> bytes:
        status, out, err = run([*amux, *words], cwd, home, stdin)
        assert status == 0, err
        return out

    try:
        ok("system", "config", "set", "memory.enabled", "true")
        status = json.loads(ok("hub", "start"))
        assert status["root"].replace("\\x5c", "\\") == str(home)  # as names are shown
        path = "notes/用户 “é”.md"
        made = json.loads(
            ok("memory", "upsert", path, "--expected-revision", "absent", stdin=TEXT.encode())
        )
        assert (home / "memory" / "global" / path).read_bytes() == TEXT.encode()
        (cwd / "né w.md").write_bytes(b"from a file\n")
        ok("memory", "upsert", "b.md", "--expected-revision", "absent", "--file", "né w.md")
        assert json.loads(ok("memory", "show", path))["content"] == TEXT
        assert ok("memory", "export", path) == TEXT.encode()
        found = json.loads(ok("memory", "search", "用户", "überschrift"))
        assert [hit["path"] for hit in found["hits"]] == [path]
        listed = json.loads(ok("memory", "list"))["documents"]
        assert [row["path"] for row in listed] == ["b.md", path]
        entry = json.loads(ok("mcp", "entry", "--json"))
        check_entries(entry, cwd, path)
        status, _, err = run([*amux, "memory", "forget", path, "--expected-revision", "absent"],
                             cwd, home)  # fmt: skip
        assert status == 3
        error = json.loads(err.decode("utf-8").splitlines()[-1])["error"]
        assert error["details"]["observed"] == made["revision"]
        ok("memory", "forget", path, "--expected-revision", made["revision"])
        removed = json.loads(ok("uninstall", "--dry-run"))["remove"]
        assert all(name.startswith(str(home)) for name in removed)
        assert sorted(os.listdir(cwd)) == ["né w.md"]
    finally:
        run([*amux, "hub", "stop"], cwd, home)


def check_entries(entry: dict[str, object], cwd: Path, path: str) -> None:
    """Start each generated command as its client would, and call a tool."""
    claude = entry["claude"]["mcpServers"]["amux"]
    codex = tomllib.loads(entry["codex"])["mcp_servers"]["amux"]
    for server in (claude, codex):
        assert os.path.isabs(server["command"])
        call = {
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "memory_get", "arguments": {"path": path}},
        }  # fmt: skip
        done = subprocess.run(
            [server["command"], *server["args"]],
            input=json.dumps(call).encode() + b"\n",
            env={"PATH": os.environ["PATH"]} | POOR | server["env"],
            cwd=cwd, capture_output=True, timeout=30, check=True,
        )  # fmt: skip
        answer = json.loads(done.stdout)["result"]["content"][0]["text"]
        assert json.loads(answer)["content"] == TEXT
        # Quoted for a shell it is the same command.
        quoted = shlex.join([server["command"], *server["args"], "--help"])
        done = subprocess.run(["sh", "-c", quoted], cwd=cwd, capture_output=True, check=True)
        assert b"amux mcp" in done.stdout


@pytest.mark.slow
@pytest.mark.requirement("row-12", "M14")
def test_in_a_locale_that_is_not_utf8_names_on_disk_are_utf8_or_no_hub_starts(
    tmp_path: Path,
) -> None:
    hub = RunningHub(
        tmp_path / "home", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0",
        AMUX_NO_AUTOSTART="0",
    )  # fmt: skip
    try:
        hub.enable()
        done = hub.cli("hub", "serve")
        assert done.returncode == 2
        assert json.loads(done.stderr.splitlines()[-1])["error"]["details"]["reason"] == "locale"
        for path in ("用户.md", "é/ü.md"):
            said = Cli(hub).upsert(path, TEXT)  # starts a Hub
            assert said.answer["changed"] is True
            assert (hub.memory_dir / path).read_bytes() == TEXT.encode()
            assert Cli(hub).get(path).answer["content"] == TEXT
    finally:
        hub.cli("hub", "stop")


class Installed(Cli):
    """The command as a program of its own, wherever it lies."""

    def __init__(self, hub: RunningHub, *command: str) -> None:
        super().__init__(hub)
        self._command = command

    def spawn(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self._command, *words], input=stdin, capture_output=True, timeout=30, check=False,
            env=self.hub.environment,
        )  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("pyz") / "amux.pyz"
    done = subprocess.run(
        ["make", "-s", "pyz"], cwd=Path(pyz.__file__).parents[1], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    target.write_bytes((Path(pyz.__file__).parents[1] / "amux.pyz").read_bytes())
    return target


@pytest.fixture(scope="module")
def hub_faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    with running_faces(tmp_path_factory.mktemp("installed") / "home") as found:
        yield found


def life(face: Installed) -> list[str]:
    """Create, read, replace, search, export in pages, be stale, forget."""
    large = "".join(f"line {number} sesame 用\n" for number in range(3000))
    made = face.upsert("life/a.md", TEXT)
    read = face.get("life/a.md")
    replaced = face.upsert("life/a.md", large, made.revision)
    found = face.search("sesame", path_prefix="life/")
    assert face.spawn("memory", "export", "life/a.md").stdout == large.encode()
    stale = face.upsert("life/a.md", "x", made.revision)
    assert stale.code == "revision_conflict"
    assert stale.details == {"observed": replaced.revision}
    gone = face.forget("life/a.md", replaced.revision)
    return [one.text for one in (made, read, replaced, found, stale, gone)]


@pytest.mark.slow
@pytest.mark.requirement("row-13", "M33", "M49")
def test_the_installed_script_and_the_one_file_build_answer_alike(
    hub_faces: Faces, built: Path
) -> None:
    script = str(Path(PYTHON).with_name("amux"))
    lives = [
        life(Installed(hub_faces.hub, *command))
        for command in ([script], [PYTHON, "-S", "-I", str(built)])
    ]
    assert lives[0] == lives[1]
    assert lives[0][0] == hub_faces.rpc.upsert("life/a.md", TEXT).text


@pytest.mark.slow
@pytest.mark.requirement("row-13", "M55", "M53")
def test_the_one_file_build_serves_mcp_and_says_that_it_holds_no_hub(
    hub_faces: Faces, built: Path, tmp_path: Path
) -> None:
    revision = hub_faces.rpc.upsert("mcp.md", TEXT).revision
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "memory_get", "arguments": {"path": "mcp.md"}},
    }  # fmt: skip
    pyz_cli = Installed(hub_faces.hub, PYTHON, "-S", "-I", str(built))
    done = pyz_cli.spawn("mcp", stdin=json.dumps(call).encode() + b"\n")
    answer = json.loads(json.loads(done.stdout)["result"]["content"][0]["text"])
    assert answer["revision"] == revision
    nowhere = RunningHub(tmp_path / "none", AMUX_NO_AUTOSTART="0")
    said = Installed(nowhere, PYTHON, "-S", "-I", str(built)).run("memory", "list")
    assert said.code == "unavailable"
    assert "install" in said.error["hint"]
