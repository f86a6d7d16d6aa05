"""A random walk through the pure machines of tasks, as long as somebody wants (TP8)."""

import random

from amux.journal.machine import Refused
from amux.journal.tasks.settling import Begin, Settle
from amux.journal.tasks.task import TaskState
from tests.support.task_world import OVERVIEW_NAME, Someone, World

CHECK_EVERY = 2_000


def walk(turns: int, *, seed: int = 11) -> int:
    """Send commands; require that refusals change nothing, and what T2 says; count refusals."""
    world, chance = World(), random.Random(seed)
    world.admit(world.people["a"], "fix it", "Export totals", "one\n")
    refused = 0
    for turn in range(turns):
        if turn % CHECK_EVERY == 0:
            world.check()
        state = chance.choice(list(world.states.values()))
        before = world.states[state.task_id]
        found = _anything(world, world.people[chance.choice("abc")], state, chance, turn)
        if isinstance(found, Refused):
            refused += 1
            assert world.states[state.task_id] is before, "a refusal leaves the state as it was"
    return refused


def _anything(
    world: World, who: Someone, state: TaskState, chance: random.Random, turn: int
) -> object:
    owner = who.owner.get(state.task_id, "own-nothing")

    def confirm() -> object:
        phase = chance.choice(["CP1", "CP1", "CP2", "CP3"])
        return world.confirm(who, state, phase, OVERVIEW_NAME, f"v{chance.randrange(9)}")

    def begin() -> object:
        file = chance.choice("xy")
        targets = {file: world.work.get(file, "absent") or "absent"}
        command = Begin(owner=owner, request_digest=f"{turn}", kind="edit", targets=targets)
        return world.operate(who, state, command)

    def end() -> object:
        if chance.randrange(20):
            return None
        if state.terminal is not None:
            return world.bind(who, f"open {turn}", state, variant="reopen")
        return world.finish(who, state, owner, chance.choice(["completed", "failed"]))

    def admit() -> object:
        if len(world.states) >= 20:
            return None
        return world.admit(who, f"new {turn}", f"Task {turn}", "one\n")

    def go_on() -> None:
        who.is_live = bool(chance.randrange(2))
        world.pass_time(chance.randrange(-50, 100))

    return chance.choice(
        [
            lambda: world.bind(who, f"words {turn % 50}", state),
            lambda: world.own(who, state, "release", owner),
            lambda: world.own(who, state, "renew", owner),
            confirm,
            begin,
            lambda: world.operate(who, state, Settle(owner=owner, request_digest=f"{turn}")),
            end,
            admit,
            go_on,
        ]
    )()
