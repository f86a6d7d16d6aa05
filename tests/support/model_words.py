"""The words of a scripted model: one answer in each of the three wire formats.

Rule 1: the same step has the same bytes, but for the numbers that tell answers apart.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

Used: TypeAlias = tuple[str, str, dict[str, Any]]  # a tool's name, its namespace, the arguments


class Reply:
    """One answer, in the words of each wire format."""

    def __init__(self, text: str, calls: Sequence[Used], number: str, model: str) -> None:
        self._text = text
        self._calls = calls
        self._number = number
        self._model = model

    def messages(self) -> tuple[dict[str, Any], list[bytes]]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": self._text}] if self._text else []
        blocks += [
            {"type": "tool_use", "id": f"toolu_{self._number}{index}", "name": name, "input": given}
            for index, (name, _, given) in enumerate(self._calls)
        ]
        reason = "tool_use" if self._calls else "end_turn"
        usage = {
            "input_tokens": 10, "output_tokens": 5,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        }  # fmt: skip
        whole = {
            "id": f"msg_{self._number}", "type": "message", "role": "assistant",
            "model": self._model, "content": blocks, "stop_reason": reason, "stop_sequence": None,
            "usage": usage,
        }  # fmt: skip
        start = whole | {"content": [], "stop_reason": None}
        parts = [_named("message_start", message=start)]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                opened, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                spelled = json.dumps(block["input"])
                opened = block | {"input": {}}
                delta = {"type": "input_json_delta", "partial_json": spelled}
            parts += [
                _named("content_block_start", index=index, content_block=opened),
                _named("content_block_delta", index=index, delta=delta),
                _named("content_block_stop", index=index),
            ]
        ended = {"stop_reason": reason, "stop_sequence": None}
        parts += [
            _named("message_delta", delta=ended, usage={"output_tokens": 5}),
            _named("message_stop"),
        ]
        return whole, parts

    def responses(self) -> tuple[dict[str, Any], list[bytes]]:
        items: list[dict[str, Any]] = []
        if self._text:
            content = [{"type": "output_text", "text": self._text, "annotations": []}]
            items.append(
                {"type": "message", "id": f"msg_{self._number}", "role": "assistant",
                 "status": "completed", "content": content}
            )  # fmt: skip
        for index, (name, space, given) in enumerate(self._calls):
            call = {
                "type": "function_call", "id": f"fc_{self._number}{index}",
                "call_id": f"call_{self._number}{index}", "status": "completed", "name": name,
                "arguments": json.dumps(given),
            }  # fmt: skip
            items.append(call | ({"namespace": space} if space else {}))
        usage = {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
        }  # fmt: skip
        whole = {
            "id": f"resp_{self._number}", "object": "response", "created_at": 0,
            "status": "completed", "model": self._model, "output": items, "usage": usage,
        }  # fmt: skip
        start = whole | {"status": "in_progress", "output": [], "usage": None}
        parts = [_named("response.created", response=start)]
        for index, item in enumerate(items):
            parts.append(_named("response.output_item.added", output_index=index, item=item))
            if item["type"] == "message":
                parts.append(
                    _named(
                        "response.output_text.delta",
                        item_id=item["id"],
                        output_index=index,
                        content_index=0,
                        delta=self._text,
                    )
                )
            parts.append(_named("response.output_item.done", output_index=index, item=item))
        return whole, [*parts, _named("response.completed", response=whole)]

    def chat(self) -> tuple[dict[str, Any], list[bytes]]:
        calls = [
            {"index": index, "id": f"call_{self._number}{index}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(given)}}
            for index, (name, _, given) in enumerate(self._calls)
        ]  # fmt: skip
        reason = "tool_calls" if calls else "stop"
        message = {"role": "assistant", "content": self._text or None}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": f"chatcmpl-{self._number}", "created": 0, "model": self._model}
        choice = {
            "index": 0, "message": message | ({"tool_calls": calls} if calls else {}),
            "finish_reason": reason,
        }  # fmt: skip
        whole = head | {"object": "chat.completion", "usage": usage, "choices": [choice]}

        def part(delta: dict[str, Any], ended: str | None = None, **more: Any) -> bytes:
            choices = [{"index": 0, "delta": delta, "finish_reason": ended}]
            return _event(head | {"object": "chat.completion.chunk", "choices": choices} | more)

        parts = [part({"role": "assistant", "content": self._text})]
        if calls:
            parts.append(part({"tool_calls": calls}))
        return whole, [*parts, part({}, reason, usage=usage), b"data: [DONE]\n\n"]


def _named(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\n".encode() + _event({"type": kind, **members})


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"
