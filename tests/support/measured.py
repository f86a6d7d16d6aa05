"""What amux adds to an agent's requests, measured on the real programs (docs/agents.md).

Rule 1: a bound first request is compared with an unbound one of the same words, its own memory
        off in both: what is left is amux's, or what the agent adds because there is a server.
Rule 2: bytes are those of compact JSON, as they stand in the request.
Rule 3: equality is of the whole part that amux influences, in every request of a session.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from amux.runtime import protocol
from amux.wire.tools import INSTRUCTIONS
from tests.support.agents import Place
from tests.support.hub import RunningHub, running_hub
from tests.support.launched import Conversation, Launcher, PiConversation, extends, plain
from tests.support.model_server import Asked, ModelServer, say
from tests.support.people import CLAUDE, CODEX, OLD_CODEX, OLD_PI, PI, Agent, Person

AGENTS = (CODEX, OLD_CODEX, CLAUDE, PI, OLD_PI)
NATIVE_OFF = {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}  # Codex's is off, Pi has none
COMPACTS_SOON = ("-c", "model_auto_compact_token_limit=12")  # an answer of the model counts 15
OF_A_SESSION = ("metadata", "prompt_cache_key", "client_metadata", "user")
OWN = "mcp__amux"
HEADS = (
    "agent", "where the protocol stands", "protocol", "tools", "instructions", "amux in all",
    "the agent by itself", "own memory", "turns", "resume", "compaction",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One row."""

    agent: str
    version: str
    place: str
    """Where the protocol stands in the request."""
    text: int
    tools: int
    instructions: int
    unbound: int
    """Places of an unbound request that name amux."""
    others: int
    """Bytes that the agent adds by itself because there is a server."""
    native: str
    """The state of its own memory, as it was read back."""
    turns: bool
    resume: bool
    compaction: bool

    @property
    def own(self) -> int:
        """Give what amux adds in all."""
        return self.text + self.tools + self.instructions


def measure(agent: Agent) -> Measured:
    """Run one agent through a session, and read what it sent."""
    with _somewhere() as (place, hub, model):
        agent.install(place)
        person = Person(place, hub)
        model.scripts |= {"hello": [say("hello")], "round": [agent.read(), say("read")]}
        person.run(agent, "please @play hello", "--memory", "off", **NATIVE_OFF)
        unbound = _main(model)[0]
        before = len(model.asked)
        session = person.run(agent, "please @play round")
        first_turn = _main(model, before)
        person.resume(session, "again @play round")
        asked = _main(model, before)
        first = asked[0]
        spelled = _size(protocol.text("mcp" if agent.has_tools else "cli")) - 2
        tools = _own_tools(first)
        instructions = len(first.where(INSTRUCTIONS)) * (_size(INSTRUCTIONS) - 2)
        in_tools = INSTRUCTIONS in json.dumps(tools)
        listed = sum(_size(tool) for tool in tools) - (instructions if in_tools else 0)
        added = _size(_comparable(first)) - _size(_comparable(unbound))
        return Measured(
            agent={"codex": "Codex", "claude": "Claude Code", "pi": "Pi"}[agent.name],
            version=agent.version,
            place=first.where("# Memory (amux)")[0].lstrip("."),
            text=spelled,
            tools=listed,
            instructions=instructions,
            unbound=len(unbound.where("amux")),
            others=added - spelled - listed - instructions,
            native=_native(agent, place, first),
            turns=_are_equal(first_turn),
            resume=_are_equal(asked) and len(asked) == 2 * len(first_turn),
            compaction=_compacted(agent, place, hub, model),
        )


def table(rows: list[Measured]) -> str:
    """Spell the rows as Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    for row in rows:
        equal = ["equal" if one else "differs" for one in (row.turns, row.resume, row.compaction)]
        lines.append(
            f"| {row.agent} {row.version} | `{row.place}` | {row.text:,} | {row.tools:,} "
            f"| {row.instructions:,} | {row.own:,} | {row.others:,} | {row.native} "
            f"| {' | '.join(equal)} |"
        )
    return "\n".join(lines) + "\n"


@contextmanager
def _somewhere() -> Iterator[tuple[Place, RunningHub, ModelServer]]:
    with ModelServer({}) as model:
        place = Place(model.url)
        try:
            with running_hub(place.root / "root") as hub:
                yield place, hub, model
        finally:
            place.remove()


def _main(model: ModelServer, since: int = 0) -> list[Asked]:
    """Give the requests of the agent's own loop: titles and summaries are made without tools."""
    return [one for one in model.asked[since:] if len(one.tool_names) > 2]


def _own_tools(asked: Asked) -> list[dict[str, Any]]:
    tools = plain(asked.body.get("tools") or [])
    return [tool for tool in tools if OWN in str(tool.get("name") or tool.get("function"))]


def _comparable(asked: Asked) -> object:
    """Give a request without what names its session, and without the prompt's own words."""
    body = {name: value for name, value in asked.body.items() if name not in OF_A_SESSION}
    if asked.kind == "messages":
        body["system"] = body["system"][1:]  # the first is a line for billing
    return plain(body)


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _influenced(asked: Asked) -> str:
    """Give the part of a request that amux influences, as it is spelled."""
    texts: list[object] = [asked.body.get("instructions"), asked.body.get("system", [])[1:]]
    texts += [item for item in asked.items if item.get("role") in ("developer", "system")]
    without_ids = [
        {name: value for name, value in text.items() if name != "id"}
        if isinstance(text, dict)
        else text
        for text in plain(texts)
    ]
    return json.dumps([without_ids, plain(asked.body.get("tools"))], ensure_ascii=False)


def _are_equal(asked: list[Asked]) -> bool:
    is_longer = all(extends(one.items, before.items) for before, one in pairwise(asked))
    return len({_influenced(one) for one in asked}) == 1 and is_longer


def _native(agent: Agent, place: Place, first: Asked) -> str:
    if agent.name == "codex":
        with sqlite3.connect(place.codex_home / "state_5.sqlite") as state:
            modes = {mode for (mode,) in state.execute("select memory_mode from threads")}
        return "off; thread " + " and ".join(sorted(modes - {"enabled"}) or ["not marked"])
    if agent.name == "claude":
        return "off" if not first.where("persistent file-based memory") else "on"
    return "none"


def _compacted(agent: Agent, place: Place, hub: RunningHub, model: ModelServer) -> bool:
    """Tell whether text and tools are the same after a compaction in a resumed session."""
    before = len(model.asked)
    launcher, person = Launcher(place, hub), Person(place, hub)
    if agent.name == "codex":
        session = person.run(agent, "please @play hello", native=COMPACTS_SOON)
        person.resume(session, "again @play hello")
        person.resume(session, "and again @play hello")
    elif agent.name == "claude":
        talked = launcher.claude(place.bin / "claude")
        talked.run("please @play hello")
        with Conversation(talked) as claude:
            _each(claude.say, "again @play hello", "/compact", "and again @play hello")
    else:
        spoken = launcher.pi(place.bin / "pi", agent.version)
        spoken.run("please @play hello", *agent.native)
        with PiConversation(spoken) as pi:
            pi.say("long " * 30_000 + "@play hello")
            pi.command("compact")
            pi.say("and again @play hello")
    asked = _main(model, before)
    is_shorter = any(len(one.items) < len(two.items) + 2 for two, one in pairwise(asked))
    return is_shorter and len({_texts(one) for one in asked}) == 1


def _texts(asked: Asked) -> tuple[int, str]:
    """Tell how often the protocol stands there, and amux's tools.

    A compaction may move the one; and Claude's own tools may be described anew after it.
    """
    return asked.count("# Memory (amux)"), json.dumps(_own_tools(asked))


def _each(say_one: Callable[[str], object], *texts: str) -> None:
    for text in texts:
        say_one(text)
