"""The table of attacks: every call times every argument times every shape, and every credential.

A new call, argument or tool of `wire.tools` is attacked by itself: where an argument has no shapes
of its own, everything of hers that is a text is tried in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from amux.wire.tools import CALLS, CONTINUE, TARGETS, TOOLS, Argument, Call
from tests.hostile.worlds import ALICE_UID, KNOWN, Loot, World

Given = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One thing that bob tries; `token` and `binding` are his own person's unless said."""

    label: str
    call: str
    given: Given
    token: str | None = None
    binding: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


def paths(loot: Loot) -> list[str]:
    sha = next(name for name in loot.names if name.startswith("users/"))
    one = loot.paths[0]
    return [
        *loot.paths, f"../{sha[6:]}/{one}", f"../../{sha}/{one}", f"{sha}/{one}", f"/{sha}/{one}",
        f"../../memory/{sha}/{one}", f"notes/../../{sha[6:]}/{one}", f"..%2f{sha[6:]}%2f{one}",
        f"..\\{sha[6:]}\\{one}", f"../{sha[6:]}", "../../global/MEMORY.md", "..", ".", "/",
        f"~{loot.principal}/{one}", f"{one}\0.md", f"notes//{one}", f"./{one}",
        "\uff0e\uff0e/" + one, "notes/\u202ealice.md", "../../../hub/identity.json",
        "../../../hub/audit.jsonl", "../../../hub/secret", "NOTES/alice.md", "notes/ALICE.md",
        "notes/alice.md/x.md", "x" * 600 + ".md", "",
    ]  # fmt: skip


def shapes(argument: Argument, loot: Loot) -> list[object]:
    """Give what is tried in an argument."""
    if argument.kind == "boolean":
        return [True, False]
    if argument.kind == "integer":
        return [0, 1, -1, 7, 2**31, 2**63, ALICE_UID]
    special: dict[str, list[object]] = {
        "path": [*paths(loot)],
        "path_prefix": [*paths(loot), "plans", "plans/0", "*", "notes/a"],
        "cursor": [loot.cursor, loot.cursor[:-2], loot.cursor[::-1], "A" + loot.cursor[1:], ""],
        "query": [KNOWN, "alice", f"{KNOWN} alice", "*", ".", "plans", "a OR b", loot.principal],
        "expected_revision": [loot.revision, "absent", loot.revision[:-1], ""],
        "content": ["", KNOWN, "\0", "[x](../alice.md)"],
    }
    return special.get(argument.name, []) or [*loot.names]


# What a call needs to be a whole one; a required argument that is not here gets a name of hers.
BASE: dict[str, object] = {
    "query": KNOWN, "content": "x", "expected_revision": "absent", "kind": "person",
    "agent": "codex", "name": "memory.enabled", "value": "false",
}  # fmt: skip


def whole(call: Call, loot: Loot) -> Given:
    """Make the arguments of a call that goes for what is hers."""
    hers = {
        "path": loot.paths[0], "session": loot.session, "principal": loot.principal,
        "alias": loot.alias, "id": loot.token_id, "acts_for": loot.principal,
        "continuation": "none",
    }  # fmt: skip
    found: Given = {}
    for argument in call.arguments:
        if argument.is_required:
            fallback = hers.get(argument.name, loot.principal)
            found[argument.name] = BASE.get(argument.name, fallback)
    return found


def on_arguments(call: Call, loot: Loot) -> Iterator[tuple[str, Given]]:
    """Try every shape in every argument, one at a time."""
    base = whole(call, loot)
    yield "as it is", base
    for argument in call.arguments:
        for number, shape in enumerate(shapes(argument, loot)):
            yield f"{argument.name}#{number}", base | {argument.name: shape}
    for name in ("principal", "scope", "parent", "uid", "binding", "token", "as"):
        yield f"one more: {name}", base | {name: loot.principal}


def on_calls(loot: Loot) -> list[Attack]:
    """Attack every call of the Hub through its arguments."""
    return [
        Attack(label=f"{name} {label}", call=name, given=given)
        for name, call in CALLS.items()
        for label, given in on_arguments(call, loot)
    ]


def on_credentials(loot: Loot, world: World) -> list[Attack]:
    """Attack every call with every credential and header that bob could send."""
    his, agent, own = world.bob, world.bob_agent, world.bob_binding
    sent: dict[str, tuple[str | None, str | None, dict[str, str]]] = {
        "his, her binding": (his, loot.binding, {}),
        "his, no Hub's binding": (his, loot.binding.replace("amux1:", "amux2:"), {}),
        "his, the global binding": (his, loot.binding[:23] + "global", {}),
        "his agent's": (agent, own, {}),
        "his agent's, her binding": (agent, loot.binding, {}),
        "his agent's, no binding": (agent, None, {}),
        "his agent's, an empty binding": (agent, "", {}),
        "her binding alone": ("", loot.binding, {}),
    }
    for name, token in loot.tokens.items():
        sent[name] = (token, None, {})
        sent[f"{name}, her binding"] = (token, loot.binding, {})
    for header, value in (
        ("X-Forwarded-User", "alice"), ("X-Remote-User", "alice"), ("Amux-Principal", "alice"),
        ("Amux-Scope", "principal:alice"), ("Amux-Session", loot.session), ("Amux-Uid", "0"),
        ("Forwarded", "for=127.0.0.1;by=alice"), ("X-Forwarded-For", "127.0.0.1"),
        ("Cookie", f"session={loot.session}"), ("X-HTTP-Method-Override", "GET"),
        ("Host", "alice"), ("Origin", "http://alice"), ("Authorization", "Basic YWxpY2U6YQ=="),
        ("Proxy-Authorization", f"Bearer {loot.token_id}"), ("If-None-Match", loot.revision),
        ("Range", "bytes=0-9"), ("Mcp-Session-Id", loot.session), ("Last-Event-ID", loot.cursor),
        ("Expect", "100-continue"), ("Content-Type", "text/plain"),
    ):  # fmt: skip
        sent[f"{header}: …"] = (his, None, {header: value})
    return [
        Attack(
            label=f"{name} with {label}", call=name, given=whole(call, loot), token=token,
            binding=binding, headers=headers,
        )
        for name, call in CALLS.items()
        for label, (token, binding, headers) in sent.items()
    ]  # fmt: skip


def on_targets(loot: Loot) -> list[tuple[str, str]]:
    """Attack the addresses themselves: methods and targets that are no calls."""
    sha = next(name for name in loot.names if name.startswith("users/"))
    targets = [
        f"/v1/memory/get?path={loot.paths[0]}", f"/v1/memory/{loot.paths[0]}", f"/v1/{sha}",
        "/v1/sessions/s-alice", "/v1/principals/alice", "/v1/tokens/" + loot.token_id, "/metrics",
        "/v1/memory/../admin/audit", "//v1/memory/get", "/v1/memory/get/", "/", "*", "/v1",
        "/v1/openapi.json", "/debug", "/hub/audit.jsonl", f"/memory/{sha}/{loot.paths[0]}",
        *sorted(set(TARGETS.values())),
    ]  # fmt: skip
    methods = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PROPFIND")
    return [(method, target) for target in targets for method in methods]


def on_tools(loot: Loot) -> list[Attack]:
    """Attack every tool; the continuations are hers, or near hers."""
    found = [
        Attack(label=f"{tool} {label}", call=tool, given=given)
        for tool, call in TOOLS.items()
        for label, given in on_arguments(call, loot)
    ]
    near = [text for one in loot.continuations for text in (one, one[:-1], one[::-1], one + "0")]
    return found + [
        Attack(label=f"continuation {n}", call=CONTINUE.name, given={"continuation": text})
        for n, text in enumerate(near)
    ]
