"""Help, man page and completions show what the table of verbs has: all of it, nothing else."""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from amux.errors import TABLE
from amux.surface.cli import completions, helptext, manpage, rows
from amux.surface.cli.main import PACKAGE
from amux.surface.cli.verbs import GLOBAL_OPTIONS, VERBS
from tests.support.command import Command

OPTIONS_OF = {name: {f"--{one}" for one in verb.option_names} for name, verb in VERBS.items()}
GLOBAL = {f"--{option.name}" for option in GLOBAL_OPTIONS}


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


@pytest.mark.requirement("M52", "row-24")
def test_help_shows_every_verb() -> None:
    listed = re.findall(r"^  ([a-z-]+(?: [a-z-]+)*)(?:  |$)", helptext.render(()), re.MULTILINE)
    assert [name for name in listed if name in VERBS] == list(VERBS)


@pytest.mark.requirement("M52", "row-24")
@pytest.mark.parametrize("name", VERBS)
def test_help_on_a_verb_shows_its_options_examples_and_exit_statuses(name: str) -> None:
    verb = VERBS[name]
    text = helptext.render(verb.words)
    body = text.partition("\noptions:\n")[2].partition("\nexamples:\n")[0]
    assert options_in(body) - {"--help"} == OPTIONS_OF[name]
    assert all(command in text for command, _ in verb.examples)
    statuses = text.partition("\nexit statuses:\n")[2]
    assert {TABLE[code].exit for code in verb.refusals} <= {
        int(found) for found in re.findall(r"^  (\d+) ", statuses, re.MULTILINE)
    }
    assert all(str(code) in re.sub(r"\s+", " ", statuses) for code in verb.refusals)


@pytest.mark.requirement("M52", "row-24")
def test_the_man_page_shows_every_verb_and_option() -> None:
    text = manpage.render().replace(r"\-", "-")
    sections = dict(re.findall(r'^\.SS "amux (.*)"\n((?:.*\n)*?)(?=\.S[SH])', text, re.MULTILINE))
    assert list(sections) == list(VERBS)
    for name, section in sections.items():
        assert set(re.findall(r"\\fB(--[a-z0-9-]+)\\fR", section)) == OPTIONS_OF[name]
    last = text.partition(".SH OPTIONS")[2]
    assert set(re.findall(r"\\fB(--[a-z0-9-]+)\\fR", last)) == GLOBAL


@pytest.mark.requirement("M52")
@pytest.mark.slow
def test_the_man_page_is_roff_without_a_warning() -> None:
    _require_program("groff")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8"],
        input=manpage.render().encode("ascii"),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""


@pytest.mark.requirement("M52", "row-24")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_completion_script_names_every_verb_and_option(shell: str) -> None:
    script = completions.SCRIPTS[shell]()
    for name in VERBS:
        assert f"'{name}'" in script
    known = set().union(*OPTIONS_OF.values()) | GLOBAL
    if shell == "fish":
        names = re.findall(r"^complete .* -l ([a-z0-9-]+)", script, re.MULTILINE)
        found = {f"--{name}" for name in names}
    else:
        found = options_in(script)
    assert found == known


# Each reads lines as a shell reads them; the last word of a line is what is being typed.
BASH = """
source "$1"
while IFS= read -r line; do
  eval "COMP_WORDS=($line)"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _amux
  echo "${COMPREPLY[*]}"
done
"""
ZSH = """
_describe() { print -r -- ${${(@P)2}%%:*} }
compadd() { shift; print -r -- $@ }
source "$1"
while IFS= read -r line; do eval "words=($line)"; CURRENT=$#words; _amux; done
"""
FISH = """
source $argv[1]
while read -l line
    eval set -l words $line
    set -l told (complete -C (string join ' ' -- $words) | string split -f1 \\t)
    echo (string join ' ' -- $told)
end
"""
ASK = {
    "bash": ["bash", "--norc", "-c", BASH, "bash"],
    "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
    "fish": ["fish", "--no-config", "-c", FISH],
}


def complete(shell: str, script: Path, lines: list[str]) -> list[set[str]]:
    """Ask a real shell what may follow each line."""
    script.write_text(completions.SCRIPTS[shell](), encoding="utf-8")
    done = subprocess.run(
        [*ASK[shell], str(script)],
        input="".join(f"{line}\n" for line in lines).encode(),
        capture_output=True,
        check=True,
        env={"HOME": str(script.parent), "PATH": os.environ["PATH"]},
    )
    assert done.stderr == b""
    return [set(line.split()) for line in done.stdout.decode().splitlines()]


@pytest.mark.requirement("M52", "row-24")
@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_real_shell_offers_exactly_what_may_follow(shell: str, tmp_path: Path) -> None:
    _require_program(shell)
    empty = "''"
    families = sorted({name.partition(" ")[0] for name in VERBS})
    lines = [f"amux {empty}", f"amux memory {empty}", f"amux --json memory {empty}"]
    lines += [f"amux {name} --" for name in VERBS]
    lines += [f"amux mcp entry --client {empty}", f"amux completion {empty}"]
    found = complete(shell, tmp_path / "script", lines)
    verbs = {name.split(" ")[1] for name in VERBS if name.startswith("memory ")}
    assert {word for word in found[0] if not word.startswith("-")} == set(families)
    assert {word for word in found[1] if not word.startswith("-")} == verbs
    assert {word for word in found[2] if not word.startswith("-")} == verbs
    for name, offered in zip(VERBS, found[3:-2], strict=True):
        shown = {word for word in offered if word.startswith("--")}
        assert shown == OPTIONS_OF[name] | {"--help"}
    assert found[-2] == {"claude", "codex"}
    assert {word for word in found[-1] if not word.startswith("-")} == {"bash", "zsh", "fish"}


@pytest.mark.requirement("M52", "row-24")
@pytest.mark.parametrize(
    "argv",
    [["--help"], ["memory", "--help"], ["memory", "show", "-h"], ["help"], ["help", "hub"], []],
)
def test_help_is_had_at_every_level(amux: Command, argv: list[str]) -> None:
    done = amux.run(*argv)
    assert done.status == 0
    assert done.out.startswith(b"usage: amux")
    assert done.err == b""


def test_help_on_a_verb_that_does_not_exist_is_refused(amux: Command) -> None:
    assert amux.run("help", "memroy").code == "invalid_argument"


def test_the_release_is_shown(amux: Command) -> None:
    assert amux.run("--version").out.startswith(b"amux ")


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_its_function(name: str) -> None:
    module, _, function = VERBS[name].handler.partition(":")
    found = import_module(f"{PACKAGE}.{module}")
    assert callable(getattr(found, function))


def _require_program(name: str) -> None:
    """Skip where a person has no such program; in CI, which installs it, fail."""
    if shutil.which(name) is None:
        assert "CI" not in os.environ, f".ci/run did not install {name}"
        pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_found_without_the_whole_table(name: str) -> None:
    assert rows.find(name) is VERBS[name]
    assert rows.find(f"{name} more") is None


def test_a_command_line_that_is_right_loads_the_rows_of_its_verb_alone() -> None:
    code = (
        "import sys; from amux.surface.cli import parse\n"
        "parse.parse(['run', 'claude', '--prompt', 'hi'])\n"
        "parse.parse(['memory', 'show', '--json', 'a.md'])\n"
        "assert not [one for one in sys.modules if one.endswith(('journal_verbs', 'cli.verbs'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
