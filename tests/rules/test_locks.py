"""The lock files pin everything by hashes, agree with each other, and name no index."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("requirements*.lock"), *ROOT.glob("tests/peers/*.lock")]
}
PINNED = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; [^\\\n]+)? \\\n((?:    --hash=.*\n)+)", re.MULTILINE
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

every_lock = pytest.mark.parametrize("name", LOCKS)


def pins(name: str) -> dict[str, str]:
    return {package: version for package, version, _ in PINNED.findall(LOCKS[name])}


@every_lock
def test_every_line_is_a_pinned_release_with_hashes(name: str) -> None:
    rest = PINNED.sub("", LOCKS[name])
    assert pins(name)
    assert not [line for line in rest.splitlines() if line and not line.lstrip().startswith("#")]


@pytest.mark.parametrize(
    "path",
    [*LOCKS, *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/peers/*.json"))],
)
def test_no_lock_file_names_an_index_or_a_host(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert "--index" not in text
    assert '"resolved"' not in text
    assert path.endswith(".json") or "://" not in text


def test_what_runs_is_what_is_checked() -> None:
    run, check = pins("requirements.lock"), pins("requirements-dev.lock")
    assert run.items() <= check.items()


def test_each_dependency_is_locked_and_explained() -> None:
    named = [re.split(r"[<>=]", line)[0] for line in PROJECT["project"]["dependencies"]]
    groups = PROJECT["dependency-groups"]
    named += [line.split("==")[0] for group in groups.values() for line in group if "==" in line]
    why = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    for name in named:
        assert re.sub("[_.]", "-", name) in pins("requirements-dev.lock"), name
        assert re.search(rf"^\|[^|]*\b{re.escape(name)}\b", why, re.MULTILINE), (
            f"{name} is not explained"
        )
