"""The way to the Hub that this process is to ask.

Rule 1: where the Hub is, and what proves who asks, is read anew for each call.
Rule 2: TLS is loaded only for a Hub that is reached by it.
"""

from amux.client import Client
from amux.runtime.context import Context


def client(ctx: Context) -> Client:
    """Give a client of the Hub that the settings name."""
    connection = ctx.config.connection
    return Client(connection, ctx.late("tls") if connection.address.is_tls else None)
