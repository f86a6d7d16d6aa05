"""The entries that amux prints for pasting."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amux.surface.cli.mcp import mcp_entry
from tests.support.command import Command

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@pytest.mark.requirement("M55", "bug-37")
@given(NAMES, NAMES)
def test_entries_say_exactly_the_executable_and_the_home(executable: str, home: str) -> None:
    claude, codex = mcp_entry([executable], home)
    server = json.loads(claude)["mcpServers"]["amux"]
    assert (server["command"], server["args"]) == (executable, ["mcp"])
    assert server["env"] == {"AMUX_HOME": home}
    table = tomllib.loads(codex)["mcp_servers"]["amux"]
    assert table == {"command": executable, "args": ["mcp"], "env": {"AMUX_HOME": home}}


@pytest.mark.requirement("M55")
def test_the_printed_entry_names_an_absolute_executable(amux: Command) -> None:
    claude = json.loads(amux.run("mcp", "entry", "--client", "claude").out)
    server = claude["mcpServers"]["amux"]
    assert server["command"].startswith("/")
    assert server["env"]["AMUX_HOME"] == amux.config.home
    codex = tomllib.loads(amux.run("mcp", "entry", "--client=codex").out.decode())
    assert codex["mcp_servers"]["amux"]["command"] == server["command"]
    both = amux.run("mcp", "entry", "--json").answer
    assert both["claude"] == claude
