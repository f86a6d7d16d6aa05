"""The scripts of this room that other interpreters run, as text, also out of a zip."""

import sys


def text(name: str) -> str:
    """Give the source of a script that lies beside this module."""
    # `pkgutil.get_data` does no more, and costs a start 3 ms.
    folder = __file__.rpartition("/")[0]
    data: bytes = sys.modules[__name__].__loader__.get_data(f"{folder}/{name}")  # type: ignore[union-attr]
    return data.decode("utf-8")
