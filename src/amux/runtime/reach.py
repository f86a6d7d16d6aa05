"""The way to the Hub that this process is to ask.

Rule 1: where the Hub is, and what proves who asks, is read anew for each call.
Rule 2: TLS is loaded only for a Hub that is reached by it.
"""

from amux.client import WAIT_SECONDS, Client
from amux.runtime.context import Context


def client(ctx: Context, wait_seconds: float = WAIT_SECONDS) -> Client:
    """Give a client of the Hub that the settings name."""
    connection = ctx.config.connection
    tls = ctx.late("tls") if connection.address.is_tls else None
    return Client(connection, tls, wait_seconds=wait_seconds)
