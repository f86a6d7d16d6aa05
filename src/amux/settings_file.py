"""`config.toml`: what a person set for the Hub of this AMUX_HOME, its clients and its launches.

Rule 1: the file is read and never written; amux has no key for what the Hub itself saves (M6).
Rule 2: an unknown key and a wrong type are refused by name: a typing mistake is not a default.
Rule 3: loaded only where the file exists: `tomllib` costs a start 20 ms.
"""

import re
import tomllib

from amux.config import FILE, HubTable, RuntimeTable, Tables
from amux.core.address import Address
from amux.errors import InvalidArgument

_TEXT = ("tls_cert", "tls_key", "shared_socket", "url", "token_file", "ca_file")
_LISTS = ("listen", "names")
_LISTEN = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_NAME = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_PLACE = re.compile(r"at line \d+, column \d+")


def parse(text: str) -> Tables:
    """Read the file's text; refuses what is not known, naming the key."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        raise _refused("", f"it is not TOML {place[0] if place else ''}".strip()) from error
    tables = Tables()
    for name, rows in found.items():
        if name not in Tables.__slots__:
            raise _refused(name, "there is no such table; known are [hub] and [runtime]")
        if not isinstance(rows, dict):
            raise _refused(name, f"write it as a table: [{name}]")
        for key, value in rows.items():
            read = _value(key, value) if name == "hub" else _path(key, value)
            setattr(getattr(tables, name), key, read)
    _require_sound(tables.hub)
    return tables


def _path(name: str, value: object) -> str:
    """Read a setting of `[runtime]`: root follows it, so it names one place, from wherever."""
    if name not in RuntimeTable.__slots__:
        raise _refused(f"runtime.{name}", "known are " + ", ".join(RuntimeTable.__slots__))
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value or "\n" in value:
        raise _refused(f"runtime.{name}", "write a path from / in quotes")
    return value


def _value(name: str, value: object) -> str | tuple[str, ...]:
    if name in _TEXT:
        if not isinstance(value, str) or not value or "\0" in value:
            raise _refused(f"hub.{name}", "write a string in quotes")
        return value
    if name not in _LISTS:
        raise _refused(f"hub.{name}", "known are " + ", ".join(sorted((*_TEXT, *_LISTS))))
    rows = [value] if isinstance(value, str) else value
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise _refused(f"hub.{name}", "write a string, or a list of strings")
    return tuple(rows)


def _require_sound(table: HubTable) -> None:
    """Refuse values that no Hub and no client could use."""
    for row in table.listen:
        found = _LISTEN.fullmatch(row)
        if found is None or int(found[1]) > 65535:
            raise _refused("hub.listen", "write an address and a port: 127.0.0.1:8484")
    for row in table.names:
        found = _NAME.fullmatch(row)
        if found is None or int(found[1] or 0) > 65535:
            raise _refused("hub.names", "write names of this Hub: hub.example or hub.example:443")
    if bool(table.tls_cert) != bool(table.tls_key):
        name = "hub.tls_key" if table.tls_cert else "hub.tls_cert"
        raise _refused(name, "a certificate and its key are set together")
    if table.url:
        try:
            Address.parse_url(table.url, "hub.url")
        except InvalidArgument as error:
            raise _refused("hub.url", error.hint) from error


def _refused(argument: str, hint: str) -> InvalidArgument:
    return InvalidArgument(
        f"{FILE} is not as it should be", hint=hint, file=FILE, argument=argument
    )
