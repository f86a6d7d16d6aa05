"""The pages say what the tables say, and all that they say."""

import re
from pathlib import Path

import pytest

from amux.errors import Code
from amux.surface.cli.mcp import mcp_entry
from amux.surface.cli.verbs import VERBS
from amux.wire.tools import ADMIN_CALLS, MEMORY_CALLS, TOOLS
from scripts import pages

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changes/*.md")])
}
LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^```(?:sh|console|json|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return PAGES[name].read_text(encoding="utf-8")


@pytest.mark.parametrize("code", Code)
def test_every_refusal_is_documented(code: Code) -> None:
    assert f"| `{code}` |" in page("docs/errors.md")


@pytest.mark.requirement("M52")
@pytest.mark.parametrize("name", VERBS)
def test_every_verb_and_each_of_its_options_is_documented(name: str) -> None:
    _, _, rest = page("docs/cli.md").partition(f"\n## amux {name}\n")
    section, _, _ = rest.partition("\n## ")
    assert VERBS[name].usage in section
    for option in VERBS[name].options:
        assert f"--{option.name}" in section
    for command, _about in VERBS[name].examples:
        assert command in section


@pytest.mark.requirement("M18")
@pytest.mark.parametrize("source", [name for _, name in pages.LIMIT_SOURCES])
def test_every_limit_has_a_reason_and_is_documented(source: str) -> None:
    found = list(pages.constants(source))
    assert found
    for name, value, why in found:
        assert why, f"{name} has no reason beside it"
        assert f"| `{name}` | {value} | {why} |" in page("docs/limits.md")


def test_every_call_and_tool_is_documented() -> None:
    words = page("docs/memory.md")
    for name in MEMORY_CALLS:
        assert f"POST /v1/memory/{name}`" in words
    for name in ADMIN_CALLS:
        assert f"POST /v1/admin/{name}`" in words
    for name, call in TOOLS.items():
        assert f"| `{name}` |" in words
        assert call.about in words


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("docs/errors.md", pages.errors),
        ("docs/cli.md", pages.verbs),
        ("docs/limits.md", pages.limits),
        ("docs/memory.md", pages.calls),
        ("docs/memory.md", pages.tools),
    ],
)
def test_generated_parts_are_current(name: str, table: object) -> None:
    assert callable(table)
    assert table() in page(name), "run `make fix`"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for target in LINK.findall(page(name)):
        if "://" not in target:
            assert (PAGES[name].parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    linked = set(LINK.findall(page("docs/index.md")))
    names = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert names <= linked


def test_both_readmes_show_the_same_commands_and_entries() -> None:
    assert BLOCK.findall(page("README.md")) == BLOCK.findall(page("README.zh-CN.md"))


@pytest.mark.requirement("M55")
def test_the_entries_to_paste_are_those_that_amux_prints() -> None:
    for entry in mcp_entry(["/path/to/amux"], "/path/to/.amux"):
        assert f"\n{entry}```" in page("README.md")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_no_folder_of_the_machine_it_was_written_on(name: str) -> None:
    assert not re.search(r"(?<![\w.~$])/(tmp|work|root|home)/\w", page(name))


def test_changes_are_named_by_issue_and_kind() -> None:
    for path in (ROOT / "changes").iterdir():
        assert re.fullmatch(r"\d+\.(added|changed|fixed|removed)\.md", path.name), path.name
        assert path.read_text(encoding="utf-8").startswith("amux now ")


def test_decisions_are_numbered_and_say_context_choice_and_cost() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(decisions) + 1))
    for path in decisions:
        words = path.read_text(encoding="utf-8")
        for part in ("**Context.**", "**Choice.**", "**Cost.**"):
            assert part in words, f"{path.name} lacks {part}"
