"""Values as bodies of records, and bodies back as values.

Rule 1: a field's wire name is its name in camel case; a class with SCHEMA says so in
        `schemaVersion`; both are the seed's words, which nothing inside knows.
Rule 2: reading is strict: every field must be there, of its type, and no other.
Rule 3: a value with DIGEST carries its own digest, over all that it says but that (J5).
"""

import types
import typing
from collections.abc import Callable, Mapping

from amux.core import canonical
from amux.core.value import Value

Body = dict[str, object]
T = typing.TypeVar("T")
_Reader = Callable[[object], object]


class Misshapen(ValueError):
    """A body is not what its kind says; the text names the field."""


def encode(value: object) -> Body:
    """Spell a value as a body."""
    kind = type(value)
    body: Body = {wire: _encode(getattr(value, name)) for name, wire, _ in _plan(kind)}
    schema = getattr(kind, "SCHEMA", None)
    if schema is not None:
        body["schemaVersion"] = schema
    return body


def decode(kind: type[T], body: object) -> T:
    """Read a value of this kind out of a body.

    Raises:
        Misshapen: a field is missing, is of another type, or is one too many.
    """
    if not isinstance(body, Mapping):
        raise Misshapen(kind.__name__)
    schema = getattr(kind, "SCHEMA", None)
    plan, names = _plan(kind), _names(kind)
    if body.keys() != names or body.get("schemaVersion", schema) != schema:
        odd = sorted(body.keys() ^ names) or ["schemaVersion"]
        raise Misshapen(f"{kind.__name__}.{odd[0]}")
    found: dict[str, object] = {}
    for name, wire, read in plan:
        try:
            found[name] = read(body[wire])
        except Misshapen as error:
            raise Misshapen(f"{wire}: {error}") from error
    return kind(**found)


def digest_of(value: object) -> str:
    """Give the digest of a value that carries its own."""
    field = typing.cast("str", getattr(type(value), "DIGEST"))  # noqa: B009
    return canonical.digest_without(encode(value), wire_name(field))


def seal(value: T) -> T:
    """Give the value with its digest filled in."""
    field = typing.cast("str", getattr(type(value), "DIGEST"))  # noqa: B009
    made = typing.cast("Value", value).replace(**{field: digest_of(value)})
    return typing.cast("T", made)


def is_sealed(value: object) -> bool:
    """Tell whether the digest that a value carries is its own."""
    field = typing.cast("str", getattr(type(value), "DIGEST"))  # noqa: B009
    return bool(getattr(value, field) == digest_of(value))


def wire_name(name: str) -> str:
    """Spell a field's name as it crosses the wire.

    >>> wire_name("cp_set_digest")
    'cpSetDigest'
    """
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _encode(value: object) -> object:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Value):
        return encode(value)
    if isinstance(value, tuple):
        return [_encode(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _encode(one) for key, one in value.items()}
    return value


_PLAIN = {str, int, bool, type(None)}
_known_names: dict[type, frozenset[str]] = {}


def _names(kind: type) -> frozenset[str]:
    found = _known_names.get(kind)
    if found is None:
        more = ["schemaVersion"] if hasattr(kind, "SCHEMA") else []
        found = frozenset([*(wire for _, wire, _ in _plan(kind)), *more])
        _known_names[kind] = found
    return found


_plans: dict[type, tuple[tuple[str, str, _Reader], ...]] = {}


def _plan(kind: type) -> tuple[tuple[str, str, _Reader], ...]:
    found = _plans.get(kind)
    if found is None:
        hints = typing.get_type_hints(kind)
        names = typing.cast("type[Value]", kind).field_names()
        found = tuple((name, wire_name(name), _reader(hints[name])) for name in names)
        _plans[kind] = found
    return found


def _reader(hint: object) -> _Reader:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return _either(tuple(_reader(one) for one in typing.get_args(hint)))
    if origin is tuple:
        return _many(_reader(typing.get_args(hint)[0]))
    if origin is not None:  # Mapping[str, X]
        return _mapping(_reader(typing.get_args(hint)[1]))
    if isinstance(hint, type) and issubclass(hint, Value):
        return lambda body: decode(hint, body)
    return _plain(typing.cast("type", hint))


def _plain(kind: type) -> _Reader:
    def read(value: object) -> object:
        if kind is object:
            return value
        if type(value) is not kind:
            raise Misshapen(f"not {kind.__name__}")
        return value

    return read


def _either(readers: tuple[_Reader, ...]) -> _Reader:
    def read(value: object) -> object:
        problem: Misshapen | None = None
        for one in readers:
            try:
                return one(value)
            except Misshapen as error:
                problem = error if problem is None or value is not None else problem
        raise problem or Misshapen("nothing fits")

    return read


def _many(reader: _Reader) -> _Reader:
    def read(value: object) -> object:
        if not isinstance(value, list):
            raise Misshapen("not a list")
        return tuple(reader(one) for one in value)

    return read


def _mapping(reader: _Reader) -> _Reader:
    def read(value: object) -> object:
        if not isinstance(value, Mapping):
            raise Misshapen("not an object")
        return {key: reader(one) for key, one in value.items()}

    return read
