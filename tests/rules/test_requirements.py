"""What is promised and what is tested are one list, both ways."""

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
ENTRIES = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))["requirement"]
FIELDS = {"id", "source", "sentence"}


def cited(source: str) -> dict[str, list[int]]:
    """Find the ids that `pytest.mark.requirement` names in a source, with their lines."""
    found = defaultdict(list)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(
            "mark.requirement"
        ):
            continue
        assert node.args, f"line {node.lineno}: requirement() names no id"
        for argument in node.args:
            assert isinstance(argument, ast.Constant), f"line {node.lineno}: an id is a literal"
            found[str(argument.value)].append(node.lineno)
    return dict(found)


def all_cited() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, lines in cited(path.read_text(encoding="utf-8")).items():
            found[name] += [f"{path.relative_to(TESTS)}:{line}" for line in lines]
    return found


def test_every_entry_says_what_where_and_why() -> None:
    names = [entry["id"] for entry in ENTRIES]
    assert len(names) == len(set(names))
    for entry in ENTRIES:
        assert entry.keys() - {"deferred"} == FIELDS, entry
        assert all(entry.values()), entry
        assert "\n" not in entry["sentence"]


def test_a_test_names_only_known_ids() -> None:
    known = {entry["id"] for entry in ENTRIES}
    unknown = {name: places for name, places in all_cited().items() if name not in known}
    assert not unknown


def test_every_id_that_is_not_deferred_has_a_test() -> None:
    tested = all_cited()
    missing = [
        entry["id"] for entry in ENTRIES if "deferred" not in entry and entry["id"] not in tested
    ]
    assert not missing


def test_no_deferred_id_has_a_test() -> None:
    tested = all_cited()
    done = {
        entry["id"]: tested[entry["id"]]
        for entry in ENTRIES
        if "deferred" in entry and entry["id"] in tested
    }
    assert not done, "take `deferred` out of tests/requirements.toml"


def test_the_finder_sees_marks_in_all_their_forms() -> None:
    source = (
        'pytestmark = pytest.mark.requirement("a")\n'
        '@pytest.mark.requirement("b", "c")\ndef test_x(): ...\n'
        'TestMachine = pytest.mark.requirement("d")(Machine.TestCase)\n'
    )
    assert cited(source) == {"a": [1], "b": [2], "c": [2], "d": [4]}
