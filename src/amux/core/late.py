"""Modules that only some runs need, loaded when something of them is first asked for.

Where a start must be quick, such a module is imported for type checkers alone, and at run time a
`Late` has its name. Contracts of imports see it all the same.
"""

from importlib import import_module


class Late:
    """Stands for a module, whose functions and values are asked for by their names."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self._name), name)
