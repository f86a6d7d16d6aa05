"""What is printed: JSON as it came, forms for a terminal, refusals as the last line."""

import io
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from amux.errors import BY_CODE, TABLE, AmuxError, Code
from amux.surface.cli import main, output
from tests.support.command import Command, Stream
from tests.support.fake_hub import FakeHub

HOSTILE = "a\x1b]0;x\x07\x9b2J\u202eb\u2066\u200f\ufeff\U000e0041\x7f\r\n\ttab 用户"


def is_unsafe(character: str) -> bool:
    return character not in "\n\t" and (
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        and character not in "\u200c\u200d"  # joiners: scripts and emoji need them
    )


@pytest.mark.requirement("M49")
def test_an_answer_passes_through_as_it_came(amux: Command, hub: FakeHub) -> None:
    text = '{"hits": [ ],  "strange":"\\u0041é用"}'
    hub.answers["search"] = text
    done = amux.run("memory", "search", "x")
    assert done.out == text.encode() + b"\n"
    assert done.status == 0


@pytest.mark.requirement("M49")
def test_a_terminal_gets_a_readable_form_and_json_on_request(amux: Command, hub: FakeHub) -> None:
    hub.documents["a.md"] = b"# Title\n"
    readable = amux.run("memory", "show", "a.md", is_terminal=True).out
    assert readable.startswith(b"# Title\n")
    assert b"revision" in readable
    asked = amux.run("memory", "show", "a.md", "--json", is_terminal=True)
    assert asked.answer["content"] == "# Title\n"


@pytest.mark.requirement("M49")
@pytest.mark.parametrize(
    "words", [["show", "a.md"], ["show", "a.md", "--json"], ["export", "a.md"]]
)
def test_a_terminal_never_gets_a_raw_control_character(
    amux: Command, hub: FakeHub, words: list[str]
) -> None:
    hub.page_bytes = 4096
    hub.documents["a.md"] = HOSTILE.encode()
    done = amux.run("memory", *words, is_terminal=True)
    assert done.status == 0
    assert not [one for one in done.out.decode() if is_unsafe(one)]
    assert "用户" in done.out.decode()
    if "--json" in words:
        assert done.answer["content"] == HOSTILE


@pytest.mark.requirement("M49")
def test_every_character_that_acts_on_a_terminal_is_escaped() -> None:
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for point in (*range(0x3100), *range(0xD800, 0xE000), *range(0xFE00, 0x10000), 0xE0041):
        character = chr(point)
        acts = (
            (unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and point not in {9, 10})
            or unicodedata.bidirectional(character) in bidi
            or point in {0x061C, 0x200E, 0x200F, 0xFEFF, 0xE0041}
        )
        if acts:
            assert output.visible(character).isascii()
            assert output.visible(character).isprintable()
        elif character.isprintable():
            assert output.visible(character) == character


@pytest.mark.requirement("M49", "M48")
@pytest.mark.parametrize("code", [code for code in Code if TABLE[code].http])
def test_a_refusal_of_the_hub_is_the_last_line_and_the_exit_status(
    amux: Command, hub: FakeHub, code: Code
) -> None:
    refusal = BY_CODE[str(code)]("it is so", hint="do that", reason="x", line=3)
    hub.answers["get"] = refusal
    done = amux.run("memory", "show", "a.md")
    assert done.status == TABLE[code].exit
    assert {"error": done.refusal} == refusal.body()


def test_a_refusal_on_a_terminal_is_json_too_and_holds_nothing_that_acts(
    amux: Command, hub: FakeHub
) -> None:
    hub.answers["get"] = AmuxError("bad \x1b[2J\u202e", hint="\x9b", path="\U000e0041")
    done = amux.run("memory", "show", "a.md", is_terminal=True)
    assert not [one for one in done.err.decode() if is_unsafe(one)]
    assert done.refusal["message"] == "bad \x1b[2J\u202e"
    assert done.details == {"path": "\U000e0041"}


@pytest.mark.requirement("M49", "M53")
def test_a_notice_stands_before_the_refusal(amux: Command, hub: FakeHub) -> None:
    hub.version = "9.9.9"
    hub.documents["a.md"] = b""
    done = amux.run("memory", "show", "a.md")
    assert done.answer["revision"]
    assert done.err.startswith(b"amux: ")
    assert b"9.9.9" in done.err
    assert b"amux hub restart" in done.err


@pytest.mark.requirement("M49")
def test_ctrl_c_ends_with_130(amux: Command, hub: FakeHub) -> None:
    def interrupt(_text: str) -> object:
        raise KeyboardInterrupt

    amux.late = interrupt
    done = amux.run("memory", "edit", "a.md")
    assert done.status == 130
    assert done.out == b""
    assert hub.names() == ["get"]


class Closed(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise BrokenPipeError


def test_a_reader_that_went_away_is_no_error(amux: Command, hub: FakeHub) -> None:
    hub.documents["a.md"] = b"text"
    amux.stdin, amux.stderr = Stream(), Stream()
    amux.stdout = io.BufferedWriter(Closed())
    assert main.run(["memory", "show", "a.md"], amux) == 0
    assert amux.stdout.closed
    assert amux.stderr.getvalue() == b""


@pytest.mark.requirement("row-12", "bug-37")
@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"LANG": "C", "PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX"},
        {"LC_ALL": "en_US.ISO-8859-1"},
    ],
    ids=str,
)
def test_text_is_utf8_in_and_out_whatever_the_locale_says(
    hub: FakeHub, home: Path, environment: dict[str, str]
) -> None:
    def amux(*words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "amux", *words],
            input=stdin,
            capture_output=True,
            check=True,
            env={"PATH": os.environ["PATH"], "AMUX_HOME": str(home)} | environment,
        )
        assert done.stderr == b""
        return done.stdout

    hub.page_bytes = 4096
    path, text = "项目/é 用户.md", "# 标题 – “quoted” 😀\r\n"
    upsert = ("memory", "upsert", path, "--expected-revision", "absent")
    assert json.loads(amux(*upsert, stdin=text.encode()))["path"] == path
    assert json.loads(amux("memory", "show", path))["content"] == text
    assert amux("memory", "export", path) == text.encode()
    assert "用户".encode() in amux("help", "memory", "search")
