"""The Hub killed at any moment while others write; nothing that was answered is undone."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.kill.home import Home, until
from tests.model.linearizable import is_linearizable
from tests.support.load import FAULT, PATHS, Caller, Load, recorded

KILLS = 50


@pytest.mark.slow
@pytest.mark.requirement("M23", "M24", "M26", "M28", "M53", "bug-6")
def test_fifty_kills_under_load_undo_no_answer(home: Home, tmp_path: Path) -> None:
    home.enable()
    assert home.amux("memory", "list").returncode == 0
    chance = random.Random(50)
    watcher = Caller("watcher", home.config.socket_path, tmp_path / "watcher")
    kills, left_behind = [], 0
    with Load(home.config.socket_path, tmp_path) as load:
        until(lambda: all(record.exists() for record in load.records), "the callers")
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.02, 0.6))  # the moment of the kill: any
            load.require_alive()
            home.kill_hub()
            kills.append(time.monotonic())
            # No Hub runs and none can be started but by us: what lies there, the dead one left.
            orphans = home.temporaries()
            left_behind += len(orphans)
            done = home.amux("memory", "list")
            assert done.returncode == 0, done.stderr.decode()
            assert b".amux-" not in done.stdout
            assert not orphans & home.temporaries()
            for path in PATHS:
                watcher.read(path)
    for path in PATHS:
        watcher.read(path)
    watcher.close()
    home.kill_hub()
    assert home.amux("memory", "list").returncode == 0
    assert not home.temporaries()
    assert home.listed() == home.expected_list()

    found = recorded([*load.records, tmp_path / "watcher"], kills)
    assert not found.pop(FAULT, []), "a refusal that nobody may see here"
    answers = Counter(
        call.result.kind if call.result else "lost" for calls in found.values() for call in calls
    )
    for path, calls in found.items():
        assert is_linearizable(calls) is True, path
    # It was a load, and the kills came in the middle of it.
    assert found.keys() == set(PATHS)
    assert answers["done"] >= 20 * KILLS
    assert answers["lost"] >= KILLS // 2
    assert left_behind >= 1
