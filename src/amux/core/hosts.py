"""The names that a Hub answers to: what a browser was talked into never passes for one.

Rule 1: `Host` is exactly one of the Hub's own names, on every transport (M76): a name that
        somebody else's DNS points at this machine is not.
Rule 2: `Origin` is absent, as programs send it, or the Hub's own page (M45).
Rule 3: nothing is looked up: names are compared as they are spelled, in any case.
"""

import re
from collections.abc import Iterable

from amux.errors import PermissionDenied

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
ANY_ADDRESS = ("0.0.0.0", "[::]")  # where to listen, but no name of anything
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9][a-z0-9._-]*)(?::([1-9][0-9]{0,4}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")


class Hosts:
    """What one Hub is called, and at which ports."""

    __slots__ = ("_given", "_names", "_ports", "_scheme")

    def __init__(self, *, listen: Iterable[tuple[str, int]], names: Iterable[str], is_tls: bool):
        addresses = [(host.lower(), port) for host, port in listen]
        self._given = {name.lower() for name in names}
        self._ports = {port for _, port in addresses}
        self._scheme = "https" if is_tls else "http"
        self._names = {
            *LOCAL_NAMES,
            *(host for host, _ in addresses if host not in ANY_ADDRESS),
            *(name for name in self._given if _port_of(name) is None),
        }

    def require(self, hosts: list[bytes], origins: list[bytes]) -> None:
        """Refuse a request that names another host, or that another site's page made."""
        if len(hosts) != 1 or not self.is_host(hosts[0].decode("latin-1")):
            raise PermissionDenied(
                "the request is for another host",
                hint="use a name of this Hub; hub.names in config.toml gives it more",
                header="Host",
            )
        if len(origins) > 1 or not all(self.is_origin(one.decode("latin-1")) for one in origins):
            raise PermissionDenied(
                "the request comes from a page of another site",
                hint="programs send no Origin",
                header="Origin",
            )

    def is_host(self, text: str) -> bool:
        """Tell whether a `Host` header names this Hub."""
        found = _HOST.fullmatch(text.lower())
        if found is None:
            return False
        return text.lower() in self._given or (
            found[1] in self._names and (found[2] is None or int(found[2]) in self._ports)
        )

    def is_origin(self, text: str) -> bool:
        """Tell whether an `Origin` header names this Hub's own pages."""
        found = _ORIGIN.fullmatch(text.lower())
        host = _HOST.fullmatch(found[2]) if found else None
        if found is None or host is None:
            return False
        scheme, port = found[1], int(host[2] or _PORTS[found[1]])
        if found[2] in self._given:
            # A name that a person gave whole may stand for a proxy that speaks TLS for the Hub.
            return scheme in {"https", self._scheme}
        return scheme == self._scheme and host[1] in self._names and port in self._ports


def _port_of(name: str) -> str | None:
    found = _HOST.fullmatch(name)
    return found[2] if found else None
