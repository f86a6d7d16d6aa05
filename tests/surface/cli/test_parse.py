"""The command line is read strictly, against one table."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.errors import AmuxError, Code
from amux.surface.cli import parse
from amux.surface.cli.verbs import GLOBAL_OPTIONS, OPTIONS, VERBS
from tests.support.command import Command

SHOW = ["memory", "show", "a.md"]


def refused(*argv: str) -> AmuxError:
    with pytest.raises(AmuxError) as caught:
        parse.parse(list(argv))
    assert caught.value.code == Code.INVALID_ARGUMENT
    return caught.value


def test_both_forms_of_an_option_mean_the_same() -> None:
    apart = parse.parse([*SHOW, "--offset", "3"])
    joined = parse.parse([*SHOW, "--offset=3"])
    assert apart.values == joined.values == {"path": "a.md", "offset": 3}


@pytest.mark.parametrize(
    "argv",
    [
        ["--json", *SHOW],
        ["memory", "--json", "show", "a.md"],
        ["memory", "show", "--json", "a.md"],
        [*SHOW, "--json"],
        ["memory", "show", "--json", "--", "a.md"],
    ],
)
def test_options_stand_anywhere(argv: list[str]) -> None:
    assert parse.parse(argv).values == {"path": "a.md", "json": True}


def test_words_of_a_query_are_joined_and_two_dashes_end_the_options() -> None:
    found = parse.parse(["memory", "search", "a", "b", "--limit", "3", "--", "-v", "--json", "--"])
    assert found.values == {"query": "a b -v --json --", "limit": 3}


def test_words_after_two_dashes_are_no_part_of_the_verb() -> None:
    assert refused("memory", "--", "show", "a.md").details["argument"] == "verb"


@pytest.mark.requirement("M48")
@pytest.mark.parametrize(
    ("argv", "argument"),
    [
        ([*SHOW, "--offzet", "1"], "--offzet"),
        ([*SHOW, "--offset", "1", "--offset=2"], "offset"),
        ([*SHOW, "--json", "--json"], "json"),
        ([*SHOW, "--offset"], "offset"),
        ([*SHOW, "--offset", "--json"], "offset"),
        ([*SHOW, "--offset", "x"], "offset"),
        ([*SHOW, "--offset", ""], "offset"),
        ([*SHOW, "--offset", "1" * 30], "offset"),
        ([*SHOW, "--json=yes"], "json"),
        ([*SHOW, "--limit", "1"], "--limit"),
        ([*SHOW, "b.md"], "b.md"),
        ([*SHOW, "-v"], "-v"),
        ([*SHOW, "--he"], "--he"),
        (["memory", "show"], "path"),
        (["memory", "search"], "query"),
        (["memory", "forget", "a.md"], "expected_revision"),
        (["memory", "upsert", "a.md"], "expected_revision"),
        (["memory"], "verb"),
        (["system", "config"], "system config"),
        (["memory", "shwo", "a.md"], "memory shwo"),
        (["nothing"], "nothing"),
        (["completion", "tcsh"], "shell"),
        (["mcp", "--tools", "everything"], "tools"),
    ],
)
def test_what_is_unknown_missing_or_doubled_is_named(argv: list[str], argument: str) -> None:
    assert refused(*argv).details["argument"] == argument


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["memory", "shwo", "a.md"], "memory show"),
        (["mem", "show"], "memory"),
        (["hub", "stat"], "hub start"),
        (["uninstal"], "uninstall"),
        ([*SHOW, "--offzet", "1"], "--offset"),
        (["memory", "search", "-v"], "after --"),
        (["memory", "search", "--", "x", "--jsn"], ""),
        ([*SHOW, "--ofset=1"], "--offset"),
    ],
)
def test_the_hint_names_the_nearest_thing(argv: list[str], hint: str) -> None:
    if hint:
        assert hint in refused(*argv).hint
    else:
        assert parse.parse(argv).values["query"] == "x --jsn"


def test_a_value_that_starts_with_a_dash_is_written_with_an_equals_sign() -> None:
    assert "--offset=" in refused(*SHOW, "--offset", "-1").hint
    assert parse.parse([*SHOW, "--offset=-1"]).values["offset"] == -1


def test_the_longest_verb_wins() -> None:
    assert parse.parse(["mcp", "entry"]).verb is VERBS["mcp entry"]
    assert parse.parse(["mcp"]).verb is VERBS["mcp"]


def test_an_option_is_of_one_kind_in_every_verb() -> None:
    for verb in VERBS.values():
        for option in verb.options:
            # `--cursor` is an agent in one verb and a place in others: a flag beside a text.
            assert {option.kind, OPTIONS[option.name].kind} <= {"flag", "text"} or (
                option.kind == OPTIONS[option.name].kind
            )
            assert option.name not in {one.name for one in GLOBAL_OPTIONS}


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_line_is_read_or_refused(argv: list[str]) -> None:
    words = [word for word in argv if word.isprintable() or word.isspace()]
    try:
        parse.parse(words)
    except AmuxError as refusal:
        assert refusal.code == Code.INVALID_ARGUMENT  # noqa: PT017 - any other is a failure


@pytest.mark.requirement("row-12")
def test_arguments_are_read_as_utf8_under_another_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso-8859-1")
    monkeypatch.setattr(sys, "getfilesystemencodeerrors", lambda: "surrogateescape")
    assert parse.utf8(["用 é".encode().decode("iso-8859-1")]) == ["用 é"]


@pytest.mark.requirement("row-12")
def test_an_argument_that_is_not_utf8_is_refused_by_its_place(amux: Command) -> None:
    done = amux.run("memory", "show", "\udcff.md")
    assert done.code == "invalid_argument"
    assert done.details["argument"] == "#3"
