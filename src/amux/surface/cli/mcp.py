"""The verbs on MCP: serve it, and print the entries that make agents start it (M55).

Rule 1: an entry names the executable absolutely and carries AMUX_HOME: an agent starts it from
        any folder, with an environment of its own.
"""

import json

from amux.runtime.context import Context
from amux.surface.cli import output
from amux.surface.cli.parse import Given
from amux.wire.tools import SERVER_NAME


def serve(ctx: Context, given: Given) -> int:
    """Serve the tools on standard input and output."""
    tools = given.text("tools") if given.has("tools") else None
    return int(ctx.late("mcp").serve(ctx, tools))


def entry(ctx: Context, given: Given) -> int:
    """Print the entry for one client, or for each."""
    claude, codex = mcp_entry(ctx.late("process").command(), ctx.config.home)
    client = given.text("client")
    if given.has("json"):
        both: dict[str, object] = {"claude": json.loads(claude), "codex": codex}
        return output.own(
            ctx,
            {client: both[client]} if client else both,
            as_json=True,
            readable=lambda _: "",
        )
    if client:
        return output.page(ctx, claude if client == "claude" else codex)
    return output.page(
        ctx,
        f"Claude Code, in .mcp.json of a project or ~/.claude.json:\n\n{claude}\n"
        f"Codex, in ~/.codex/config.toml:\n\n{codex}",
    )


def mcp_entry(command: list[str], home: str) -> tuple[str, str]:
    """Make the entries for Claude Code (JSON) and for Codex (TOML), ready to paste."""
    executable, *before = command
    arguments = [*before, "mcp"]
    server = {
        "type": "stdio",
        "command": executable,
        "args": arguments,
        "env": {"AMUX_HOME": home},
    }
    claude = json.dumps({"mcpServers": {SERVER_NAME: server}}, ensure_ascii=False, indent=2)
    codex = (
        f"[mcp_servers.{SERVER_NAME}]\n"
        f"command = {_toml(executable)}\n"
        f"args = [{', '.join(_toml(one) for one in arguments)}]\n"
        f"env = {{ AMUX_HOME = {_toml(home)} }}\n"
    )
    return claude + "\n", codex


def _toml(text: str) -> str:
    """Spell a TOML basic string: JSON's escapes are TOML's, but TOML escapes DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
