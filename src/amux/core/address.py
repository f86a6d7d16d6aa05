"""Where a Hub is, and what a client sends it with each call.

Rule 1: an address is the absolute path of a Unix socket, or a URL without path, query or user.
Rule 2: a token never leaves this machine in the clear: plain HTTP is for loopback only (M54).
Rule 3: what becomes a header is checked here: it has no blank and no line end.
"""

import re

from amux.errors import InvalidArgument

URL_MAX_BYTES = 512
HEADER_MAX_BYTES = 512  # a token has 70 bytes, a binding 100
_PORTS = {"https": 443, "http": 80}
# Compiled where they are needed: a client of its own Hub's socket never is in need of them.
_URL = r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_-][a-z0-9._-]*)(?::([1-9][0-9]{0,4}))?/?"
_LOOPBACK = r"localhost|127(\.[0-9]{1,3}){3}|\[::1\]"
_VISIBLE = r"[!-~]+"


class Address:
    """One place where a Hub listens."""

    __slots__ = ("authority", "host", "is_tls", "port", "socket_path", "text")

    def __init__(
        self,
        text: str,
        *,
        socket_path: str = "",
        host: str = "",
        port: int = 0,
        is_tls: bool = False,
        authority: str = "localhost",
    ) -> None:
        self.text = text
        self.socket_path = socket_path
        self.host = host
        self.port = port
        self.is_tls = is_tls
        self.authority = authority

    @classmethod
    def local(cls, socket_path: str) -> "Address":
        """Give the address of a Unix socket."""
        return cls(socket_path, socket_path=socket_path)

    @classmethod
    def parse(cls, text: str, argument: str) -> "Address":
        """Read a socket's path or a URL; `argument` names the setting in a refusal."""
        if text.startswith("/"):
            if "\0" in text:
                raise _refused(argument, "a path holds no NUL")
            return cls.local(text)
        return cls.parse_url(text, argument)

    @classmethod
    def parse_url(cls, text: str, argument: str) -> "Address":
        """Read a URL; `argument` names the setting in a refusal."""
        found = re.fullmatch(_URL, text.lower()) if len(text) <= URL_MAX_BYTES else None
        if found is None:
            raise _refused(argument, "write https://host:port, without path, query or user")
        scheme, host, port = found[1], found[2], int(found[3] or 0)
        if port > 65535:
            raise _refused(argument, "a port is 1 to 65535")
        if scheme == "http" and not is_loopback(host):
            raise _refused(argument, "use https: plain http would show the token to the network")
        return cls(
            text,
            host=host.strip("[]"),
            port=port or _PORTS[scheme],
            is_tls=scheme == "https",
            authority=f"{host}:{port}" if port and port != _PORTS[scheme] else host,
        )


class Connection:
    """How one client reaches its Hub."""

    __slots__ = ("address", "binding", "ca_file", "may_start", "token")

    def __init__(
        self,
        address: Address,
        *,
        token: str = "",
        binding: str = "",
        ca_file: str = "",
        may_start: bool = True,
    ) -> None:
        self.address = address
        self.token = token
        self.binding = binding
        self.ca_file = ca_file
        self.may_start = may_start
        """Whether a Hub may be started where none listens: the one of this AMUX_HOME only."""


def is_loopback(host: str) -> bool:
    """Tell whether a host, as a URL spells it, never leaves this machine."""
    return re.fullmatch(_LOOPBACK, host) is not None


def is_header(text: str) -> bool:
    """Tell whether a text may stand in a header as it is."""
    return len(text) <= HEADER_MAX_BYTES and re.fullmatch(_VISIBLE, text) is not None


def _refused(argument: str, hint: str) -> InvalidArgument:
    return InvalidArgument("this is no address of a Hub", hint=hint, argument=argument)
