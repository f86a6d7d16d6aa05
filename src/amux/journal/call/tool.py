"""One tool as a value: its arguments, its verb, and how agents are shown it.

Rule 1: schemas are closed; bounds are left to the server, which checks them by the same rows.
Rule 2: it is on the start path of `amux mcp`: plain classes, and nothing slow is imported.
"""


class Field:
    """One argument, or one key of an argument that is an object.

    `kind`: line and text are words of people; word is a name that a rule of its own checks; date
    is YYYYMMDD, day YYYY-MM-DD; hex stands for 64 hex digits, or the first 16 or more of them.
    `least` and `most` count chars, items, or bound a number.
    """

    __slots__ = (
        "about", "choices", "default", "fields", "is_required", "item", "kind", "least", "most",
        "name",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: str,
        least: int = 0,
        most: int = 0,
        *,
        default: object = None,
        required: bool = False,
        choices: tuple[str | int, ...] = (),
        fields: tuple["Field", ...] = (),
        item: "Field | None" = None,
        about: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.least = least
        self.most = most
        self.default = default
        self.is_required = required
        self.choices = choices
        self.fields = fields
        self.item = item
        self.about = about

    @property
    def flag(self) -> str:
        """Spell it as the command line does: in kebab-case (J72)."""
        return "".join(f"-{one.lower()}" if one.isupper() else one for one in self.name)

    @property
    def is_plain(self) -> bool:
        """Tell whether the command line has a flag for it; the others come through --args."""
        return self.kind not in ("object", "array", "evidence", "record", "budget")


class Tool:
    """One tool: its verb on the command line, what it takes, and what agents are told of it."""

    __slots__ = ("about", "fields", "is_read", "name", "verb")

    def __init__(
        self,
        name: str,
        verb: str,
        about: str,
        *fields: Field,
        read: bool = False,
    ) -> None:
        self.name = name
        self.verb = verb
        self.about = about
        self.fields = fields
        self.is_read = read

    def field(self, name: str) -> Field | None:
        """Find one of its arguments."""
        return next((one for one in self.fields if one.name == name), None)

    @property
    def is_task(self) -> bool:
        """Tell whether it is one of tasks.md."""
        return self.verb.startswith("task ")


FILTERS = ("active", "completed", "blocked", "unresolved", "all")  # J38
PROJECT = Field("project", "word", 1, 200)
SCOPE = Field("scope", "word", choices=("project", "workspace"))

_READS = {"readOnlyHint": True}
_WRITES = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
_TYPES = {"integer": "integer", "boolean": "boolean", "array": "array"}


def shown(tool: Tool) -> dict[str, object]:
    """Give a tool as `tools/list` shows it."""
    return {
        "name": tool.name,
        "description": tool.about,
        "inputSchema": schema(tool),
        "annotations": _READS if tool.is_read else _WRITES,
    }


def schema(tool: Tool) -> dict[str, object]:
    """Give the JSON schema of a tool's arguments: a closed object."""
    return _object(tool.fields)


def _object(fields: tuple[Field, ...]) -> dict[str, object]:
    found: dict[str, object] = {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
    }
    required = [field.name for field in fields if field.is_required]
    if required:
        found["required"] = required
    found["additionalProperties"] = False
    return found


def _property(field: Field) -> dict[str, object]:
    shown: dict[str, object]
    if field.kind == "object":
        shown = _object(field.fields)
    elif field.kind in ("record", "budget"):
        shown = {"type": "object"}
    elif field.kind == "evidence":
        shown = {}
    else:
        shown = {"type": _TYPES.get(field.kind, "string")}
    if field.item is not None:
        shown["items"] = _property(field.item)
    if field.choices:
        shown["enum"] = list(field.choices)
    if field.about:
        shown["description"] = field.about
    return shown
