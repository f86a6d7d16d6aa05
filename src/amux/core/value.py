"""Frozen values that cost the start of an agent next to nothing.

`dataclasses` takes 11 ms to import and half a millisecond a class, which each `amux run` would pay
thirty times over before its agent begins. Here a class costs microseconds.

Rule 1: what type checkers know of a dataclass holds: frozen, slotted, compared by its fields,
        and keyword-only unless its class says `kw_only=False`.
Rule 2: a default is shared by all that do not give another, so it is immutable.
"""

from collections.abc import Callable
from types import MappingProxyType

TYPE_CHECKING = False  # importing `typing` for the real one would cost each start 4 ms
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar, dataclass_transform

    T = TypeVar("T", bound="Value")
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Do what `typing.dataclass_transform` does at run time: nothing."""
        return lambda kind: kind


NOTHING: "MappingProxyType[str, Any]" = MappingProxyType({})


class _Slotted(type):
    """Makes a slot of each annotation, and keeps what stands beside it as its default."""

    _names: tuple[str, ...]
    _fields: frozenset[str]
    _defaults: dict[str, object]
    _places: tuple[str, ...]
    """The fields that may be given by their place."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], space: "dict[str, Any]", *, kw_only: bool = True
    ) -> "_Slotted":
        own = tuple(
            field
            for field, kind in space.get("__annotations__", {}).items()
            if "ClassVar" not in str(kind)
        )
        names = own
        defaults = {field: space.pop(field) for field in names if field in space}
        for base in bases:
            if isinstance(base, _Slotted):
                names, defaults = (*base._names, *names), {**base._defaults, **defaults}
        space["__slots__"] = own
        made = super().__new__(cls, name, bases, space)
        made._names, made._defaults, made._fields = names, defaults, frozenset(names)
        made._places = () if kw_only else names
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value(metaclass=_Slotted):
    """A value: its fields are the annotations of its class, in their order.

    >>> class Point(Value):
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1).replace(y=2)
    Point(x=1, y=2)
    """

    if not TYPE_CHECKING:

        def __init__(self, *placed: object, **given: object) -> None:
            kind = type(self)
            if placed:
                if len(placed) > len(kind._places):
                    raise TypeError(f"{kind.__name__} takes {len(kind._places)} by their places")
                given |= dict(zip(kind._places, placed, strict=False))
            if given.keys() != kind._fields:
                given = self._completed(given)
            for name, value in given.items():
                object.__setattr__(self, name, value)

        @classmethod
        def _completed(cls, given: dict[str, object]) -> dict[str, object]:
            """Add the defaults; refuses what lacks a field, or has one too many."""
            odd = given.keys() - cls._fields
            if odd:
                raise TypeError(f"{cls.__name__} has no {', '.join(sorted(odd))}")
            found = {**cls._defaults, **given}
            for name in cls._names:
                if name not in found:
                    raise TypeError(f"{cls.__name__} lacks {name}")
            return found

        def __setattr__(self, name: str, _: object) -> None:
            raise AttributeError(f"{type(self).__name__} is frozen: {name}")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"{type(self).__name__} is frozen: {name}")

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Name its fields, in their order."""
        return cls._names

    def replace(self, **changes: "Any") -> "Self":
        """Give a copy with some fields changed."""
        return type(self)(**{**self.fields(), **changes})

    def fields(self) -> "dict[str, Any]":
        """Give its fields by name, in their order; what they hold is not copied."""
        return {name: getattr(self, name) for name in type(self)._names}

    def plain(self) -> "dict[str, Any]":
        """Give its fields as plain data: values within are dictionaries too."""
        return {name: _plain(value) for name, value in self.fields().items()}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((type(self), *self.fields().values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields().items())
        return f"{type(self).__qualname__}({shown})"


def _plain(value: object) -> object:
    match value:
        case Value():
            return value.plain()
        case tuple() | list():
            return [_plain(one) for one in value]
        case dict() | MappingProxyType():
            return {key: _plain(one) for key, one in value.items()}
        case _:
            return value
