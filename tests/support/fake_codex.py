"""A Codex that plays one part of an app-server: what older and broken ones say.

FAKE_CODEX says which part, FAKE_LOG where its calls are kept; `--version` answers as the real one.
"""

import json
import os
import sys
import time

OFF = {
    "features": {"memories": False},
    "memories": {"use_memories": False, "generate_memories": False},
}
ON = OFF | {"memories": {"use_memories": True, "generate_memories": False}}
THREAD = "01900000-0000-7000-8000-00000000000a"
UNSET = {"features": {"memories": False}, "memories": None}


def main() -> None:
    """Answer line by line."""
    part = os.environ["FAKE_CODEX"]
    if "--version" in sys.argv:
        print("what?" if part == "nonsense-version" else "codex-cli 0.150.0")
        return
    if part == "dies":
        sys.exit(3)
    if part == "closes":
        os.close(1)
        time.sleep(60)
    if part == "garbage":
        print("I am no app-server", flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
            log.write(line)
        if "id" in said and part != "silent":
            print(
                json.dumps({"id": said["id"], **answer(part, said["method"], said["params"])}),
                flush=True,
            )


def answer(part: str, method: str, params: dict[str, object]) -> dict[str, object]:
    """Give the answer to one call."""
    if method == "config/read":
        config = {"on": ON, "unset": UNSET}.get(part, OFF)
        return {"result": {"config": config, "layers": []}}
    if method == "thread/memoryMode/set" and part == "older":
        return {"error": {"code": -32600, "message": "Invalid request: unknown variant `x`"}}
    is_known = params.get("threadId") == THREAD
    if method == "thread/memoryMode/set" and not is_known:
        return {"error": {"code": -32600, "message": "no rollout found for thread id 0"}}
    if method == "thread/memoryMode/set" and part == "late":
        return {"error": {"code": -32603, "message": "the state cannot be written"}}
    if method == "thread/start":
        return {"result": {"thread": {"id": THREAD}}}
    return {"result": {}}


if __name__ == "__main__":
    main()
