"""The verbs on who is who: principals with their aliases, and tokens (M64).

Rule 1: they work with and without a running Hub, and start none.
Rule 2: a token is shown once, where it is made; no verb takes one (M75).
"""

from amux.errors import InvalidArgument
from amux.runtime.context import Context
from amux.surface.cli import offline, output, render
from amux.surface.cli.parse import Given


def add(ctx: Context, given: Given) -> int:
    """Make a principal known, or enable it again."""
    found = offline.ask(ctx, "principal_add", given.wire("principal"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.principal)


def disable(ctx: Context, given: Given) -> int:
    """Disable a principal."""
    found = offline.ask(ctx, "principal_disable", given.wire("principal"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.principal)


def alias(ctx: Context, given: Given) -> int:
    """Give a principal an alias, or take one away."""
    if given.has("alias") == given.has("remove"):
        raise InvalidArgument(
            "give an alias, or take one away with --remove",
            hint="usage: amux principal alias PRINCIPAL ALIAS",
            argument="alias",
        )
    arguments = given.wire("principal", "alias")
    if given.has("remove"):
        arguments |= {"alias": given.text("remove"), "remove": True}
    found = offline.ask(ctx, "principal_alias", arguments)
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.alias)


def list_principals(ctx: Context, given: Given) -> int:
    """List principals with their aliases."""
    found = offline.ask(ctx, "principal_list", {})
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.principals)


def create_token(ctx: Context, given: Given) -> int:
    """Make a token and show it, this once."""
    names = ("kind", "principal", "acts_for", "label", "days")
    found = offline.ask(ctx, "token_create", given.wire(*names))
    if given.has("bare"):
        return output.page(ctx, f"{found.value()['token']}\n")
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.token)


def list_tokens(ctx: Context, given: Given) -> int:
    """List tokens, without what proves them."""
    found = offline.ask(ctx, "token_list", {})
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.tokens)


def revoke_token(ctx: Context, given: Given) -> int:
    """Revoke a token."""
    found = offline.ask(ctx, "token_revoke", given.wire("id"))
    return output.answer(ctx, found.text, as_json=given.has("json"), readable=render.revoked)
