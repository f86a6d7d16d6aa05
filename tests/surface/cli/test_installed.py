"""The whole way of a document, by the installed script and by the one-file build (row 13)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import pyz
from tests.surface.cli.test_hub import Machine, refusal

BEFORE = ("# 标题\r\n" + '\t"用户 😀\n' * 1500).encode()
AFTER = b"\xef\xbb\xbfno newline at the end, totals?"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path / "an amux: 'ü'")
    try:
        found.answer("system", "config", "set", "memory.enabled", "true")
        found.answer("hub", "restart")
        yield found
    finally:
        found.close()


class Amux:
    """One way to start the program."""

    def __init__(self, machine: Machine, argv: list[str]) -> None:
        self.environment = machine.environment | {"LANG": "C", "PYTHONIOENCODING": "cp1252"}
        self.argv = argv

    def __call__(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self.argv, "memory", *words],
            input=stdin,
            capture_output=True,
            env=self.environment,
            cwd=self.environment["HOME"],
            timeout=30,
        )

    def answer(self, *words: str, stdin: bytes = b"") -> dict[str, object]:
        done = self(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return json.loads(done.stdout)


def story(amux: Amux, path: str) -> list[object]:
    """Create, read, replace, search, export by pages, be stale, forget."""
    told: list[object] = []
    created = amux.answer("upsert", path, "--expected-revision", "absent", stdin=BEFORE)
    told.append(created)
    told.append(amux.answer("show", path))
    assert amux("export", path).stdout == BEFORE
    revision = str(created["revision"])
    told.append(amux.answer("upsert", path, "--expected-revision", revision, stdin=AFTER))
    found = amux.answer("search", "totals?")
    told.append(found)
    assert [hit["path"] for hit in found["hits"]] == [path]  # type: ignore[attr-defined]
    assert amux("export", path).stdout == AFTER
    stale = amux("forget", path, "--expected-revision", revision)
    assert (stale.returncode, stale.stdout) == (3, b"")
    told.append(refusal(stale.stderr))
    now = str(amux.answer("show", path)["revision"])
    told.append(amux.answer("forget", path, "--expected-revision", now))
    told.append(amux.answer("list")["documents"])
    return told


@pytest.mark.requirement("row-13", "row-12", "M33")
@pytest.mark.slow
def test_the_script_and_the_one_file_give_equal_answers_and_bytes(
    machine: Machine, tmp_path: Path
) -> None:
    pyz.build(tmp_path / "amux.pyz")
    script = Amux(machine, [str(Path(sys.executable).with_name("amux"))])
    one_file = Amux(machine, [sys.executable, "-S", "-I", str(tmp_path / "amux.pyz")])
    told = story(script, "notes/用户 é.md")
    assert told[-3]["details"]["observed"] == told[2]["revision"]  # type: ignore[index]
    assert told == story(one_file, "notes/用户 é.md")


@pytest.mark.requirement("M53")
@pytest.mark.slow
def test_the_one_file_alone_cannot_start_a_hub_and_says_so(tmp_path: Path) -> None:
    pyz.build(tmp_path / "amux.pyz")
    machine = Machine(tmp_path / "home")
    amux = Amux(machine, [sys.executable, "-S", "-I", str(tmp_path / "amux.pyz")])
    done = amux("list")
    assert (done.returncode, done.stdout) == (5, b"")
    assert refusal(done.stderr)["code"] == "unavailable"
    assert not machine.home.exists()


@pytest.mark.slow
@pytest.mark.requirement("J1")
def test_the_one_file_has_all_of_the_journal(tmp_path: Path) -> None:
    one_file = tmp_path / "amux.pyz"
    pyz.build(one_file)
    (tmp_path / "app" / ".git").mkdir(parents=True)

    def amux(*words: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-S", "-I", str(one_file), *words],
            capture_output=True,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "AMUX_AGENT": "codex"},
            cwd=tmp_path / "app",
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    amux("workspace", "init", "--pi")
    amux("journal", "write", "--content", "text", "--row", "a row")
    status = amux("journal", "status")
    assert status["latestRows"][0]["summary"] == "a row"  # type: ignore[index]
    assert amux("journal", "sessions")["totalMatched"] == 1
    assert amux("workspace", "doctor")["base"] == str(tmp_path / "app")
    assert amux("task", "list")["schemaVersion"]
