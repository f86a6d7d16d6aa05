"""The client's half of TLS: who answers is who was meant, or nothing is sent.

Rule 1: verification cannot be switched off; a private authority is named, never skipped (M54).
Rule 2: loaded only for a Hub behind `https`: `ssl` costs a start 20 ms.
"""

import socket
import ssl
from functools import lru_cache

from amux.errors import InvalidArgument, Unavailable


def wrapped(connection: socket.socket, host: str, ca_file: str) -> socket.socket:
    """Give the connection encrypted, once the other end has proved to be `host`."""
    try:
        return _context(ca_file).wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(
            "the Hub's certificate could not be verified, so nothing was sent",
            hint="set hub.ca_file to the authority that signed it, and hub.url to a name in it",
            reason=error.verify_message,
        ) from error


@lru_cache(maxsize=4)
def _context(ca_file: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            "the file of the certificate authority cannot be used",
            hint="name a readable PEM file",
            argument="hub.ca_file",
            cause=type(error).__name__,
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
