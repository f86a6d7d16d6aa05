"""The peer of `amux mcp`: the official SDK's low-level server on stdio, with the same tools."""

import asyncio

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult, Tool

from amux.wire import tools


async def main() -> None:
    """Serve until standard input ends."""

    async def listing(*_: object) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=call.about,
                    input_schema=tools.schema(call),
                )
                for name, call in tools.TOOLS.items()
            ]
        )

    server: Server = Server("peer", on_list_tools=listing)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
