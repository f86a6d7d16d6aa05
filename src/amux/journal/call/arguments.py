"""Arguments of a call, checked against the table of tools (J7).

Rule 1: an object is closed, at every level; nothing is coerced, trimmed or defaulted but as the
        table says. CRLF and CR in a text become LF, before anything is counted.
Rule 2: the reason tells a read from a writer, and a writer's long string from its other faults.
Rule 3: what one argument means for another stands in `_TOGETHER`, one function a tool.
Rule 4: what needs a rule of its own (paths, row types, locales, evidence) is refused by its owner:
        here such a string is only one that may be read.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta

from amux.core import canonical, guard
from amux.errors import AmuxError
from amux.journal.call.tool import Field, Tool
from amux.journal.call.tools import AGENTS
from amux.journal.moment import Moment
from amux.journal.refusals import next_call, refuse

_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEX = re.compile(r"[0-9A-Fa-f]{16,64}")
_SECTION = re.compile(r"[A-Za-z0-9._-]{1,64}-[0-9A-Fa-f]{12}")
_DATE = re.compile(r"[0-9]{8}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REPEATED_MAX_BYTES = 2048  # of arguments that a refusal gives back: more would cost more than help
_SHOWN_CHARS = 64  # of a name that the caller made up

Arguments = dict[str, object]


def check(tool: Tool, given: object, now: Moment) -> Arguments:
    """Give the arguments as the tool may use them, or refuse the first that it may not."""
    found = _Check(tool, now).keys("", given, tool.fields)
    together = _TOGETHER.get(tool.name)
    if together is not None:
        together(tool, found)
    for field in tool.fields:
        if field.default is not None and field.name not in found:
            found[field.name] = field.default
    if tool.is_read and tool.field("date") is not None:
        found.setdefault("date", f"{now.today:%Y%m%d}")
    return found


class _Check:
    """One check of one object."""

    def __init__(self, tool: Tool, now: Moment) -> None:
        self._tool = tool
        self._now = now

    def keys(self, path: str, given: object, fields: tuple[Field, ...]) -> Arguments:
        if not isinstance(given, Mapping):
            raise wrong(self._tool, path or "arguments", "an object is needed")
        known = {field.name: field for field in fields}
        found: Arguments = {}
        for name, value in given.items():
            if name not in known:
                raise refuse(
                    "MEMORY_ARGUMENT_UNKNOWN",
                    "unknown argument",
                    hint="known are " + ", ".join(known),
                    argument=_joined(path, str(name)[:_SHOWN_CHARS]),
                )
            found[name] = self.value(_joined(path, name), value, known[name])
        missing = [one.name for one in fields if one.is_required and one.name not in found]
        if missing:
            raise required(self._tool, given if not path else {}, _joined(path, missing[0]))
        return found

    def value(self, path: str, value: object, field: Field) -> object:
        match field.kind:
            case "integer":
                return self._integer(path, value, field)
            case "boolean":
                if not isinstance(value, bool):
                    raise wrong(self._tool, path, "true or false is needed")
                return value
            case "object":
                return self.keys(path, value, field.fields)
            case "array":
                return self._array(path, value, field)
            case "evidence" if not isinstance(value, str):
                return self.keys(path, value, _EVIDENCE)
            case "record" | "budget":
                return self._data(path, value, field)
            case _:
                return self._string(path, value, field)

    def _integer(self, path: str, value: object, field: Field) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(self._tool, path, "a whole number is needed")
        if field.choices and value not in field.choices:
            raise wrong(self._tool, path, f"one of {_listed(field.choices)} is needed")
        if not field.choices and not field.least <= value <= field.most:
            raise wrong(self._tool, path, f"{field.least} to {field.most} is allowed")
        return value

    def _array(self, path: str, value: object, field: Field) -> list[object]:
        if not isinstance(value, list):
            raise wrong(self._tool, path, "an array is needed")
        if not field.least <= len(value) <= field.most:
            raise wrong(self._tool, path, f"{field.least} to {field.most} items are allowed")
        item = field.item
        if item is None:
            return value
        items = [self.value(f"{path}[{at}]", one, item) for at, one in enumerate(value)]
        if item.choices and len(set(map(str, items))) < len(items):
            raise wrong(self._tool, path, "an item stands twice")
        return items

    def _data(self, path: str, value: object, field: Field) -> Mapping[str, object]:
        """Take an object whose keys its owner knows; its strings are guarded all the same."""
        if not isinstance(value, Mapping):
            raise wrong(self._tool, path, "an object is needed")
        if field.kind == "budget" and not all(
            isinstance(one, int) and not isinstance(one, bool) for one in value.values()
        ):
            raise wrong(self._tool, path, "its values are whole numbers")
        for text in _strings(value):
            self._guard(path, text)
        try:
            canonical.encode(value)
        except ValueError as error:
            raise wrong(self._tool, path, "whole numbers and Unicode text are needed") from error
        return value

    def _string(self, path: str, value: object, field: Field) -> str:
        if not isinstance(value, str):
            raise wrong(self._tool, path, "a string is needed")
        text = value
        if field.kind == "text":
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._guard(path, text)
        if field.kind in _LINES and _BREAKS.search(text):
            raise wrong(self._tool, path, "a line holds no line break")
        self._measure(path, text, field)
        if field.choices and text not in field.choices:
            raise wrong(self._tool, path, f"one of {_listed(field.choices)} is needed")
        rule = _RULES.get(field.kind)
        return text if rule is None else rule(self._tool, path, text, self._now)

    def _measure(self, path: str, text: str, field: Field) -> None:
        if field.most and len(text) > field.most:
            if self._tool.is_read:
                raise wrong(self._tool, path, f"at most {field.most} characters are allowed")
            raise refuse(
                "MEMORY_WRITER_ARGUMENT_TOO_LARGE",
                "an argument is too long",
                hint=f"send at most {field.most} characters; divide what is longer",
                argument=path,
                limit=field.most,
            )
        if len(text) < field.least:
            raise wrong(self._tool, path, f"at least {field.least} characters are needed")
        if field.kind == "text" and field.least and not text.strip():
            raise wrong(self._tool, path, "it is blank")

    def _guard(self, path: str, text: str) -> None:
        """Refuse text that is no Unicode, holds a NUL or, for a writer, what nobody sees (M78)."""
        if "\0" in text or any("\ud800" <= one <= "\udfff" for one in text):
            raise wrong(self._tool, path, "Unicode text without U+0000 is needed")
        if self._tool.is_read:
            return
        hidden = guard.invisible_in(text)
        if hidden is not None:
            raise refuse(
                "MEMORY_WRITER_ARGUMENT_INVALID",
                "an argument holds an invisible character that is not text",
                hint="remove it; nothing is stripped for you",
                argument=path,
                character=hidden.character,
                line=hidden.line,
                at=hidden.at,
            )


def wrong(tool: Tool, argument: str, why: str) -> AmuxError:
    """Refuse an argument that is not as it should be."""
    reason = "MEMORY_QUERY_INVALID" if tool.is_read else "MEMORY_WRITER_ARGUMENT_INVALID"
    return refuse(reason, "an argument is not valid", hint=f"{argument}: {why}", argument=argument)


def required(tool: Tool, given: Mapping[str, object], *missing: str) -> AmuxError:
    """Refuse a call that lacks an argument, and give it back as the call to complete."""
    reason = "MEMORY_QUERY_INVALID" if tool.is_read else "MEMORY_WRITER_ARGUMENT_REQUIRED"
    return refuse(
        reason,
        "an argument is missing",
        hint="send it again with " + " and ".join(missing),
        next_call=again(tool, given, *missing),
        argument=missing[0],
    )


def again(tool: Tool, given: Mapping[str, object], *missing: str) -> Arguments | None:
    """Give a call back as the one to complete; None where that would cost more than it helps."""
    try:
        is_short = len(canonical.encode(given)) <= _REPEATED_MAX_BYTES
    except ValueError:
        return None
    return next_call(tool.name, given, fill=missing) if is_short else None


def _date(tool: Tool, path: str, text: str, now: Moment) -> str:
    if not _DATE.fullmatch(text):
        raise wrong(tool, path, "a date as YYYYMMDD is needed")
    found = _real(tool, path, text)
    if found > now.today + timedelta(days=1):
        raise wrong(tool, path, "it lies after tomorrow")
    return text


def _day(tool: Tool, path: str, text: str, _now: Moment) -> str:
    if not _DAY.fullmatch(text):
        raise wrong(tool, path, "a date as YYYY-MM-DD is needed")
    _real(tool, path, text.replace("-", ""))
    return text


def _real(tool: Tool, path: str, digits: str) -> date:
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError as error:
        raise wrong(tool, path, "there is no such date") from error


def _hex(tool: Tool, path: str, text: str, _now: Moment) -> str:
    if not _HEX.fullmatch(text):
        raise wrong(tool, path, "64 hex digits are needed, or the first 16 or more")
    return text.lower()


def _agent(tool: Tool, path: str, text: str, _now: Moment) -> str:
    name = text.strip().lower() if text.isascii() else text  # J28 compares so
    if name not in AGENTS:
        raise wrong(tool, path, f"one of {_listed(AGENTS)} is needed")
    return name


def _session_id(tool: Tool, path: str, text: str, _now: Moment) -> str:
    if not _ID.fullmatch(text):
        raise wrong(tool, path, "1 to 64 of letters, digits, . _ - are needed")
    return text


def _token(_tool: Tool, path: str, text: str, _now: Moment) -> str:
    if not _HEX.fullmatch(text):
        raise _binding_invalid(path)
    return text.lower()


def _section(_tool: Tool, path: str, text: str, _now: Moment) -> str:
    if not _SECTION.fullmatch(text):
        raise _binding_invalid(path)
    session_id, _, start = text.rpartition("-")
    return f"{session_id}-{start.lower()}"


def _binding_invalid(path: str) -> AmuxError:
    return refuse(
        "MEMORY_SESSION_BINDING_INVALID",
        "this is no section handle and no section token",
        hint="send section as the receipt gave it, or leave it out to open a section",
        argument=path,
    )


_LINES = ("line", "word", "agent", "date", "day", "hex", "sessionId")
_RULES: dict[str, Callable[[Tool, str, str, Moment], str]] = {
    "agent": _agent,
    "date": _date,
    "day": _day,
    "hex": _hex,
    "sessionId": _session_id,
    "token": _token,
    "section": _section,
}
_EVIDENCE = (
    Field("path", "path", required=True),
    Field("sha256", "hex"),
    Field("bytes", "integer", 0, 2**53),
)


def _of_session_query(tool: Tool, found: Arguments) -> None:
    if "contentOffset" in found and "sessionId" not in found:
        raise wrong(tool, "contentOffset", "it goes with sessionId only")


def _of_session_write(tool: Tool, found: Arguments) -> None:
    has_id, has_token = "sessionId" in found, "sessionBinding" in found
    if has_id and not has_token:
        raise refuse(
            "MEMORY_SESSION_BINDING_REQUIRED",
            "an id alone opens no section",
            hint="send section, or sessionBinding beside sessionId",
            argument="sessionBinding",
        )
    if has_token and not has_id:
        raise required(tool, {}, "sessionId")
    if "section" in found and has_id:
        raise wrong(tool, "section", "it and sessionId name a section twice")
    if "section" in found or has_id:
        for name in ("title", "intent", "sourceMessage"):
            if name in found:
                raise wrong(tool, name, "it goes with opening a section only")
    if not {"content", "handoff", "row"} & found.keys():
        raise required(tool, found, "content")
    handoff = found.get("handoff")
    if isinstance(handoff, dict) and "artifact-links" in handoff and "artifacts" in found:
        raise wrong(tool, "handoff.artifact-links", "artifacts are its links already")


def _of_append(tool: Tool, found: Arguments) -> None:
    if "row" in found and "entry" in found:
        raise wrong(tool, "entry", "exactly one of row and entry is needed")
    if "row" not in found and "entry" not in found:
        raise required(tool, found, "entry")


def _of_resolve(_tool: Tool, found: Arguments) -> None:
    if not str(found.get("name", "")).strip():
        raise refuse(
            "TASK_NAME_REQUIRED",
            "no task was named",
            hint="send name: a display name, an alias or a taskId",
            argument="name",
        )


def _of_admit(tool: Tool, found: Arguments) -> None:
    if found.get("operation", "admit") != "admit":
        if "task" not in found:
            raise required(tool, found, "task")
        return
    if "task" in found:
        return  # a caller's taskId has a reason of its own (T20)
    # Without words of its own it goes by an ingress, which has kind and variant (T18, T29).
    needed = ("taskKind", "displayName", "overview") if "instruction" in found else _OF_INGRESS
    missing = [name for name in needed if name not in found]
    if missing:
        raise required(tool, found, *missing)


_OF_INGRESS = ("displayName", "overview")


def _of_owner(tool: Tool, found: Arguments) -> None:
    needed = "continuationLease" if found["operation"] == "acquire" else "owner"
    if needed not in found:
        raise required(tool, found, needed)


def _of_operation(tool: Tool, found: Arguments) -> None:
    if found["op"] == "begin" and "targets" not in found:
        raise required(tool, found, "targets")


def _of_children(tool: Tool, found: Arguments) -> None:
    needed = ("items", "source") if found["op"] == "plan" else ("planDigest",)
    missing = [name for name in needed if name not in found]
    if missing:
        raise required(tool, found, *missing)


_TOGETHER: dict[str, Callable[[Tool, Arguments], None]] = {
    "memory_session_query": _of_session_query,
    "memory_session_write": _of_session_write,
    "memory_summary_append": _of_append,
    "memory_task_resolve": _of_resolve,
    "memory_task_admit_v2": _of_admit,
    "memory_task_write_owner": _of_owner,
    "memory_task_operation": _of_operation,
    "memory_child_plan": _of_children,
}


def _strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for key, one in value.items() for text in (str(key), *_strings(one))]
        case list():
            return [text for one in value for text in _strings(one)]
        case _:
            return []


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(choices: tuple[str | int, ...] | tuple[str, ...]) -> str:
    return ", ".join(map(str, choices))
