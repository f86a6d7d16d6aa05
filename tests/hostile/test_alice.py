"""Bob against alice's memory, by every face, call, argument and credential: he learns nothing.

Each attack is made in two worlds, with alice and without. What bob sees must be equal to the byte.
"""

import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import amux.surface
from tests.hostile import faces
from tests.hostile.faces import FACES, called_at_mcp, in_both
from tests.hostile.worlds import KNOWN, MARKER, Loot, World, minted

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_root")]
ATTEMPTS_MIN = {
    "owners_socket": 900, "tcp": 900, "shared_socket": 300, "mcp_stdio": 300, "mcp_http": 300,
    "cli": 80,
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds() -> Iterator[list[World]]:
    folder = Path(tempfile.mkdtemp(prefix="amux-"))
    folder.chmod(0o755)
    made: list[World] = []
    try:
        made += [World(folder / "with", has_alice=True), World(folder / "less", has_alice=False)]
        yield made
    finally:
        for world in made:
            world.close()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def loot(worlds: list[World]) -> Loot:
    """What bob has got of hers; her continuations are alive while he tries them."""
    found = worlds[0].loot()
    for _ in range(2):
        answer = called_at_mcp(
            worlds[0], "memory_get", {"path": "plans/big.md"}, minted(11)[1], None
        )
        text = json.loads(answer.partition(b"\r\n\r\n")[2])["result"]["content"][0]["text"]
        found.continuations.append(json.loads(text)["continuation"])
    assert all(found.continuations)
    return found


@pytest.mark.requirement("row-9", "bug-16", "M71", "M63", "M65", "M69")
@pytest.mark.parametrize("name", FACES)
def test_bob_sees_the_same_whether_alice_exists_or_not(
    worlds: list[World], loot: Loot, name: str
) -> None:
    _, face = FACES[name]
    with_her, without = in_both(face, worlds, loot)
    assert len(with_her) >= ATTEMPTS_MIN.get(name, 80)
    learnt = []
    for (label, seen), (same, unseen) in zip(with_her, without, strict=True):
        assert label == same
        assert seen, label
        if worlds[0].plainly(seen) != worlds[1].plainly(unseen):
            learnt.append((label, seen[-300:], unseen[-300:]))
        assert MARKER.encode() not in seen, label
        assert b'"code":"internal"' not in seen, (label, seen)
    assert not learnt, (len(learnt), learnt[:3])


@pytest.mark.requirement("row-9")
def test_the_attacks_are_made_of_all_calls_and_faces() -> None:
    """A module of `surface/` that nobody attacks makes this fail."""
    (place,) = amux.surface.__path__
    served = {path.name.removesuffix(".py") for path in Path(place).iterdir()}
    served -= {"__init__", "__pycache__"}
    assert served - faces.NO_FACES == {module for module, _ in FACES.values()}


@pytest.mark.requirement("row-9")
def test_alice_has_what_bob_was_after(worlds: list[World], loot: Loot) -> None:
    """Or else all these refusals prove nothing: her own token opens every door."""
    world, hers = worlds[0], minted(11)[1]
    got = world.answer("get", {"path": loot.paths[0]}, hers)
    assert MARKER in str(got["content"])
    assert len(world.answer("search", {"query": KNOWN, "limit": 20}, hers)["hits"]) == 20
    assert world.answer("list", {"cursor": loot.cursor}, hers)["documents"]
    text = called_at_mcp(
        world, "result_continue", {"continuation": loot.continuations[0]}, hers, None
    )
    assert MARKER.encode() in text
    assert "error" not in world.answer("list", {}, minted(1)[1])
    # And what is hers alone is refused to him by its code, not shown as if it were nothing.
    stale = world.answer("list", {"cursor": loot.cursor}, world.bob)
    assert stale["error"]["code"] == "cursor_stale"
    for place in (world.bob, minted(2)[1]):
        text = called_at_mcp(
            world, "result_continue", {"continuation": loot.continuations[1]}, place,
            world.bob_binding,
        )  # fmt: skip
        assert b"not_found" in text
    for token in loot.tokens.values():
        assert "error" in world.answer("list", {}, token)


@pytest.mark.requirement("row-9", "M71")
@pytest.mark.parametrize("name", ["get", "search", "upsert", "session"])
def test_the_time_of_an_answer_does_not_tell_what_she_has(
    worlds: list[World], loot: Loot, name: str
) -> None:
    """Interleaved, in one world: what is hers against what is nobody's, told apart no better than
    by a coin."""
    world = worlds[0]
    hub = world.hub
    # Documents of hers that no attack has named: he has made none of these names his own.
    hers_at, nobodys_at = (f"plans/{n}-{'x' * 80}.md" for n in ("033", "933"))
    pairs: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
        "get": ("get", {"path": hers_at}, {"path": nobodys_at}),
        "search": ("search", {"query": KNOWN}, {"query": "nobodyword"}),
        "upsert": (
            "upsert",
            {"path": hers_at, "content": "x", "expected_revision": loot.revision},
            {"path": nobodys_at, "content": "x", "expected_revision": "0" * 64},
        ),
        "session": ("renew", {"session": "s-alice"}, {"session": "s-nobod"}),
    }
    call, hers, nobodys = pairs[name]

    def request(given: dict[str, object]) -> bytes:
        attack = faces.Attack(label="", call=call, given=given)
        return faces.posted(attack, world, "localhost")

    times: dict[bool, list[float]] = {True: [], False: []}
    requests = {True: request(hers), False: request(nobodys)}
    chance = random.Random(9)
    for _ in range(600):
        is_hers = chance.random() < 0.5
        started = time.perf_counter()
        hub.raw(requests[is_hers])
        times[is_hers].append(time.perf_counter() - started)
    assert 0.4 < told_apart(times[True], times[False]) < 0.6, {
        key: statistics.median(one) for key, one in times.items()
    }


def told_apart(one: list[float], other: list[float]) -> float:
    """Give the chance that a random one of the first takes longer than one of the second."""
    return sum(a > b for a in one for b in other) / (len(one) * len(other))


def test_the_measure_tells_apart_what_differs() -> None:
    chance = random.Random(1)
    slow = [1.1 + chance.random() / 10 for _ in range(300)]
    fast = [1.0 + chance.random() / 10 for _ in range(300)]
    assert told_apart(slow, fast) > 0.95
    assert 0.4 < told_apart(fast, list(reversed(fast))) < 0.6


def test_a_difference_of_one_byte_is_seen(worlds: list[World]) -> None:
    world = worlds[0]
    assert world.plainly(b'{"documents":[]}') != world.plainly(b'{"documents":[1]}')
    noisy: Callable[[str], bytes] = lambda time: f'"at":"{time}"'.encode()  # noqa: E731
    assert world.plainly(noisy("2026-01-31T12:00:00.1+00:00")) == world.plainly(
        noisy("2026-02-01T13:00:01+00:00")
    )
