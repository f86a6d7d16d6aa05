"""Those who are not let in leave lines, but cannot wash out the trail."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from amux.core.identity import Caller
from amux.disk.trail import Trail
from amux.disk.tree import Root
from amux.hub import audit
from amux.threads import Threads


@pytest.mark.requirement("M73", "M76")
def test_a_flood_of_wrong_tokens_leaves_few_lines_and_the_next_says_how_many(
    tmp_path: Path,
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    trail = Trail(
        Root.open(str(tmp_path)), "audit.jsonl",
        max_bytes=audit.MAX_BYTES, parts_kept=2, reserve_bytes=audit.RESERVE_BYTES,
    )  # fmt: skip
    with Threads(1, name="audit") as threads:
        kept = audit.Audit(trail, now=lambda: now, run=threads.run)
        for _ in range(10_000):
            kept.stranger(Caller(uid=None, token="x"), "unauthenticated")
        lines = (tmp_path / "audit.jsonl").read_bytes().splitlines()
        assert len(lines) == audit.STRANGERS_BURST
        now += timedelta(seconds=1)
        kept.stranger(Caller(uid=None, token="x"), "unauthenticated")
    last = (tmp_path / "audit.jsonl").read_bytes().splitlines()[-1]
    assert b'"unlisted":9900' in last
