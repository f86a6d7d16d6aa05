"""The rows of the verbs on who is who and who did what: a part of the one table of verbs.

Rule 1: as in `verbs.py`, which holds the rest.
"""

from amux.errors import Code
from amux.surface.cli.verb import HUB, JSON, Option, Positional, Verb

_ADMINISTERS = (Code.NOT_SAVED, Code.CORRUPT, Code.OUTCOME_UNKNOWN, *HUB)
_PRINCIPAL = Positional("principal", "PRINCIPAL", "its name: lower-case letters, digits and . - _")

ROWS = (
    Verb(
        "principal add",
        "people:add",
        "make a principal known, or enable it again",
        _PRINCIPAL,
        JSON,
        about="A principal is whose memory it is: a person or a service. Under the policy "
        "per_principal each has a memory of its own.",
        examples=(("amux principal add bob", "somebody else on this machine"),),
        refusals=(Code.LIMIT_EXCEEDED, *_ADMINISTERS),
    ),
    Verb(
        "principal list",
        "people:list_principals",
        "list principals with their aliases",
        JSON,
        examples=(("amux principal list", "who is who"),),
        refusals=HUB,
    ),
    Verb(
        "principal alias",
        "people:alias",
        "tell that somebody who calls is a principal",
        _PRINCIPAL,
        Positional("alias", "ALIAS", "unix:<uid> or feishu:<open id>", required=False),
        Option("remove", "ALIAS", "take this alias away instead"),
        JSON,
        about="An alias belongs to one principal. Whoever comes by an alias that was taken away "
        "is unknown from then on.",
        examples=(
            ("amux principal alias alice unix:1001", "uid 1001 of this machine is alice"),
            ("amux principal alias alice --remove unix:1001", "it is nobody"),
        ),
        refusals=(Code.NOT_FOUND, *_ADMINISTERS),
    ),
    Verb(
        "principal disable",
        "people:disable",
        "stop a principal: its aliases and tokens work no more",
        _PRINCIPAL,
        JSON,
        about="Its documents stay. `amux principal add` enables it again.",
        examples=(("amux principal disable alice", "nothing of hers is deleted"),),
        refusals=(Code.NOT_FOUND, *_ADMINISTERS),
    ),
    Verb(
        "token create",
        "people:create_token",
        "make a token and show it, this once",
        Option("kind", "K", "whose it is", required=True, choices=("person", "service", "runtime")),
        Option("principal", "P", "the principal it is of; local if not given, for a person"),
        Option("acts-for", "P", "the principal whose memory a service or runtime works in"),
        Option("label", "L", "words of yours, to know it again"),
        Option("days", "N", "days until it expires; never if not given", kind="integer"),
        Option("bare", "", "print the token alone, for a file", kind="flag"),
        JSON,
        about="The Hub keeps no token, only what proves it. Keep it in a private file that "
        "AMUX_CREDENTIAL_FILE names; it goes into no argument and no environment.",
        examples=(
            ("(umask 077; amux token create --kind person --bare > amux.token)", "for yourself"),
            (
                "amux token create --kind service --principal ci --acts-for alice --days 90",
                "a service that works in the memory of alice",
            ),
        ),
        refusals=(Code.NOT_FOUND, Code.LIMIT_EXCEEDED, *_ADMINISTERS),
    ),
    Verb(
        "token list",
        "people:list_tokens",
        "list tokens, without what proves them",
        JSON,
        examples=(("amux token list", "the newest first, delegated ones too"),),
        refusals=HUB,
    ),
    Verb(
        "token revoke",
        "people:revoke_token",
        "revoke a token, and with it what it has delegated",
        Positional("id", "ID", "the token's id, as list shows it; not the token"),
        JSON,
        examples=(("amux token revoke ID", "at once"),),
        refusals=(Code.NOT_FOUND, *_ADMINISTERS),
    ),
    Verb(
        "audit",
        "audit:audit",
        "show who did what, when, and from which session",
        Option("principal", "P", "only lines of this principal"),
        Option("path", "PATH", "only lines about this document"),
        Option("session", "S", "only lines of this session's credential"),
        Option("since", "T", "only lines since 2026-01-31, 2026-01-31T12:00 (UTC), or 12h ago"),
        Option("follow", "", "go on with the lines to come", kind="flag"),
        JSON,
        about="One JSON object a line. A write has an intent before it and an outcome after; an "
        "intent whose state is `no outcome` was cut off by a crash, and only the document tells "
        "whether it happened: it did if its revision is the intent's `after`. Content, queries "
        "and tokens are in no line.",
        examples=(
            ("amux audit --since 12h", "what happened lately"),
            ("amux audit --path MEMORY.md", "who changed this document"),
        ),
        refusals=HUB,
    ),
)
