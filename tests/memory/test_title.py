from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from amux.memory.title import Title, title
from tests.support.growth import require_linear


@pytest.mark.requirement("M37")
@pytest.mark.parametrize(
    ("text", "words", "line", "lines"),
    [
        ("# A title\n", "A title", 1, 1),
        ("\ufeff# After a mark of order\r\n", "After a mark of order", 1, 1),
        ("   #\tIndented ##  \n", "Indented", 1, 1),
        ("    # Code\n# Title", "Title", 2, 1),
        ("#Tag\n#\n# \n## Two\n# C#\n", "C#", 5, 1),
        ("# # #\nx", "#", 1, 1),
        ("```sh\n# comment\n```\n# Title\n", "Title", 4, 1),
        ("~~~\n```\n# no\n~~~~ \n# Title\n", "Title", 5, 1),
        ("````\n```\n# no\n````\n# Title\n", "Title", 5, 1),
        ("```not `a` fence\n# Title\n", "Title", 2, 1),
        ("Title\n===\n", "Title", 1, 1),
        ("para\n\nTwo\n lines \n=\n", "Two\nlines", 3, 2),
        ("Second\n---\nFirst\n===\n", "First", 3, 1),
        ("===\n\n# Title\n", "Title", 3, 1),
        ("- item\n===\n# Title\n", "Title", 3, 1),
        ("> quoted\n===\n", "", 0, 0),
        ("```\n# never closed\n", "", 0, 0),
        ("no title\n## at all\n", "", 0, 0),
        ("", "", 0, 0),
    ],
)
def test_the_title_is_the_first_level_1_heading_outside_code_fences(
    text: str, words: str, line: int, lines: int
) -> None:
    assert title(text.encode("utf-8")) == Title(words.encode("utf-8"), line, lines)


PARTS = [
    "# a",
    "#",
    "## b",
    "x",
    "y z",
    "",
    "===",
    "---",
    "```",
    "~~~~",
    "> q",
    "- l",
    "# ",
    "    c",
]


@pytest.mark.requirement("M37")
@given(st.lists(st.sampled_from(PARTS), max_size=9))
def test_the_title_agrees_with_a_parser_of_commonmark(lines: list[str]) -> None:
    text = "\n".join(lines)
    tokens = MarkdownIt("commonmark").parse(text)
    expected = (0, "")
    for token, inline in pairwise(tokens):
        is_top = token.type == "heading_open" and token.tag == "h1" and token.level == 0
        if is_top and inline.content:
            # The parser strips continued lines later, when it renders them.
            words = "\n".join(line.strip() for line in inline.content.split("\n"))
            expected = (token.map[0] + 1, words)
            break
    found = title(text.encode("utf-8"))
    assert (found.line, found.words.decode("utf-8")) == expected


@pytest.mark.requirement("M42")
@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 60_000 + "b",
        "# " + "# " * 30_000,
        "x\n" * 30_000 + "===",
        "- a\n===\n" * 8_000,
        "=" * 60_000 + "x",
        "* " * 30_000 + "x\n===",
        "```\n" * 16_000,
        "\n" * 60_000,
    ],
    ids=["blanks", "hashes", "paragraph", "lists", "underline", "rule", "fences", "empty"],
)
def test_no_text_makes_finding_the_title_slow(text: str) -> None:
    require_linear(lambda part: title(part.encode("utf-8")), text)
