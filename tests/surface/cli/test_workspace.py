"""Setting a workspace up as a person does: real processes, both console scripts."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from amux.journal.store.root import hold
from tests.support.roots import place_in
from tests.support.workspaces import project, tree

pytestmark = pytest.mark.slow

AMUX = "import sys; from amux.app import main; sys.exit(main())"
DEVCODEX = "import sys; from amux.app import devcodex; sys.exit(devcodex())"


def run(
    cwd: Path, *words: str, script: str = AMUX, status: int = 0, **environment: str
) -> dict[str, object]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    home = cwd.parent / "home of é"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=cwd,
        env={**kept, "HOME": str(home), "AMUX_HOME": str(home / ".amux"), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert bool(done.stdout) == (status == 0)
    return json.loads(done.stdout or done.stderr.splitlines()[-1])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    place = tmp_path / "Lucas Costa" / "项目 é: one"
    project(place, ".")
    return place


@pytest.mark.requirement("J20", "J22", "JA37", "JA38", "bug-37")
def test_both_scripts_set_up_alike_in_a_path_with_blanks_and_other_letters(base: Path) -> None:
    words = ("--claude", "--codex", "--cursor", "--pi")
    dry = run(base, "init", *words, "--dry-run", script=DEVCODEX, LANG="C", LC_ALL="C")
    assert not (base / ".devcodex").exists()
    assert run(base, "workspace", "init", *words) == dry
    assert dry["root"] == str(base)
    assert dry["project"] == "project"
    made = tree(base)
    by_devcodex = run(base, "init", *words, script=DEVCODEX)
    assert by_devcodex == run(base, "workspace", "init", *words)
    assert by_devcodex["created"] == []
    assert tree(base) == made
    # What was generated can be started as it stands, wherever it is.
    server = json.loads((base / ".mcp.json").read_text())["mcpServers"]["amux"]
    assert [server["command"], *server["args"]] == ["amux", "mcp"]


@pytest.mark.requirement("J22")
def test_the_profile_and_the_doctor_have_the_seeds_names(base: Path) -> None:
    run(base, "workspace", "init")
    made = run(base, "profile", "init", script=DEVCODEX, GEMINI_CLI="1")
    assert made["agent"] == "gemini-cli"
    again = run(base, "workspace", "profile", "init", GEMINI_CLI="1")
    assert again == {**made, "created": [], "unchanged": made["created"]}
    before = tree(base)
    alone = run(base, "workspace", "doctor", GEMINI_CLI="1")
    whole = run(base, "doctor", "pi", GEMINI_CLI="1")
    assert whole["workspace"] == alone
    assert run(base, "doctor", "pi", script=DEVCODEX, GEMINI_CLI="1") == whole
    assert tree(base) == before


@pytest.mark.requirement("J12")
def test_flag_and_variable_name_the_workspace(base: Path, tmp_path: Path) -> None:
    run(tmp_path / "Lucas Costa", "workspace", "init", str(base))
    for found in (
        run(tmp_path, "workspace", "doctor", "--workspace", str(base)),
        run(tmp_path, "workspace", "doctor", AMUX_WORKSPACE=str(base)),
        run(tmp_path, "workspace", "doctor", "--workspace", str(base), AMUX_WORKSPACE="/"),
    ):
        assert found["base"] == str(base)


@pytest.mark.requirement("J20", "JA37")
def test_the_home_directory_is_refused_unless_it_is_named(base: Path) -> None:
    home = base.parent / "home of é"
    home.mkdir()
    refused = run(home, "workspace", "init", status=2, HOME=str(home))
    assert refused["error"]["details"]["reason"] == "MEMORY_WORKSPACE_TOO_WIDE"  # type: ignore[index]
    assert tree(home) == {}
    run(home, "workspace", "init", str(home), HOME=str(home))
    assert (home / ".devcodex").is_dir()


@pytest.mark.requirement("J21", "JA38")
def test_rules_go_as_they_came(base: Path) -> None:
    (base / ".mcp.json").write_text('{"mcpServers": {"mine": {}}}')
    run(base, "workspace", "init")
    before = tree(base)
    run(base, "workspace", "init", "--claude", "--cursor")
    assert run(base, "workspace", "remove-rules", "--dry-run")["removed"]
    run(base, "workspace", "remove-rules", "--claude")
    assert (base / ".cursor").exists()
    run(base, "workspace", "remove-rules")
    assert tree(base) == before


def test_devcodex_knows_nothing_else_and_says_so(base: Path) -> None:
    refused = run(base, "memory", "list", script=DEVCODEX, status=2)
    assert refused["error"]["code"] == "invalid_argument"  # type: ignore[index]


@pytest.mark.requirement("J20", "J21", "J25")
def test_many_set_up_one_workspace_at_once_and_all_find_it_done(base: Path) -> None:
    flags = ("--claude", "--codex", "--cursor", "--pi")
    with ThreadPoolExecutor(8) as together:
        done = [together.submit(run, base, "workspace", "init", *flags) for _ in range(8)]
    receipts = [one.result() for one in done]
    again = run(base, "workspace", "init", *flags)
    assert again["created"] == again["changed"] == []
    for receipt in receipts:
        paths = [*receipt["created"], *receipt["changed"], *receipt["unchanged"]]  # type: ignore[misc]
        assert set(paths) >= set(again["unchanged"])  # type: ignore[call-overload]
    names = {path.name for path in base.rglob("*")}
    assert not [name for name in names if name.endswith(".tmp")]


@pytest.mark.requirement("J20", "J21", "J25")
def test_what_another_init_has_written_and_not_recorded_yet_is_no_persons(base: Path) -> None:
    flags = ("--claude", "--codex")
    made = run(base, "workspace", "init", *flags)
    record = base / ".devcodex/rules.json"
    known = record.read_bytes()
    with ThreadPoolExecutor(1) as beside:

        def between(_: object) -> object:
            """Stand where an init stands that has written all files, but not its record."""
            record.unlink()
            late = beside.submit(run, base, "workspace", "init", *flags, AMUX_LOCK_WAIT_MS="9000")
            wait([late], timeout=1.5)
            record.write_bytes(known)
            return late

        late = hold(place_in(base), wait_ms=1000, act=between)
        receipt = late.result()
    assert receipt["created"] == receipt["changed"] == receipt["warnings"] == []
    handed = {path for path in made["created"] if not path.startswith(".devcodex")}  # type: ignore[union-attr]
    assert handed <= set(receipt["unchanged"])  # type: ignore[arg-type]
