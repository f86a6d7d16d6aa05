"""One turn of Claude by its Agent SDK: a script of one file, run by a person's own Python (R17).

Rule 1: the only file that imports `claude_agent_sdk`, and nothing of amux imports it: it knows
        nothing of amux either, and runs on Python 3.10 or newer.
Rule 2: what to ask, and with which options, is one JSON object on standard input.
Rule 3: what the agent says goes to standard output, one JSON object a line, as Claude prints it.
Rule 4: where the SDK is missing, or its start fails, the line says so and the exit status is 3.
"""

import asyncio
import json
import sys
from typing import Any

sdk: Any
try:
    import claude_agent_sdk
except ImportError as error:
    sdk, missing = None, str(error)
else:
    sdk, missing = claude_agent_sdk, ""

REFUSED = 3
FAILED = 1


def say(kind: str, **members: object) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps({"type": kind, **members}) + "\n")
    sys.stdout.flush()


def blocks(content: Any) -> list[dict[str, Any]]:
    """Give what a message holds, as Claude spells it."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    found: list[dict[str, Any]] = []
    for block in content:
        if isinstance(block, sdk.ToolUseBlock):
            found.append(
                {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
            )
        elif isinstance(block, sdk.ToolResultBlock):
            found.append(
                {
                    "type": "tool_result",
                    "tool_use_id": block.tool_use_id,
                    "content": block.content,
                    "is_error": bool(block.is_error),
                }
            )
        elif isinstance(block, sdk.TextBlock):
            found.append({"type": "text", "text": block.text})
    return found


def tell(message: Any) -> bool:
    """Print one message of the agent; tell whether it is a failed result."""
    if isinstance(message, sdk.ResultMessage):
        say(
            "result",
            subtype=message.subtype,
            is_error=message.is_error,
            result=message.result,
            session_id=message.session_id,
        )
        return bool(message.is_error)
    if isinstance(message, sdk.SystemMessage):
        if message.subtype == "init":
            say("system", subtype="init", session_id=message.data.get("session_id"))
    elif isinstance(message, sdk.AssistantMessage):
        say("assistant", message={"content": blocks(message.content)})
    elif isinstance(message, sdk.UserMessage):
        say("user", message={"content": blocks(message.content)})
    return False


async def ask(prompt: str, options: dict[str, Any]) -> int:
    """Ask once, and give the exit status."""
    has_failed = False
    async for message in sdk.query(prompt=prompt, options=sdk.ClaudeAgentOptions(**options)):
        has_failed = tell(message)
    return FAILED if has_failed else 0


def main() -> int:
    """Read what is asked for, and do it."""
    if sdk is None:
        say("amux_refused", cause=missing)
        return REFUSED
    asked = json.load(sys.stdin)
    try:
        return asyncio.run(ask(asked["prompt"], asked["options"]))
    except (sdk.CLINotFoundError, sdk.CLIConnectionError, TypeError) as error:
        say("amux_refused", cause=f"{type(error).__name__}: {error}")
        return REFUSED
    except sdk.ClaudeSDKError as error:
        say("result", is_error=True, result=f"{type(error).__name__}: {error}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
