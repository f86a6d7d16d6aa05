"""Starts a Hub with one thing changed: `python -m bench.launch no-simd|slow-fsync VERB…`."""

import sys
import time

SLOW_SECONDS = 0.003  # about what an NVMe disk of a laptop takes; here it takes 0.2 ms


def main() -> int:
    """Change the one thing, then be `amux`."""
    what = sys.argv.pop(1)
    if what == "no-simd":
        sys.modules["stringzilla"] = None  # type: ignore[assignment]  # an ImportError from here on
    else:
        from amux.disk import atomic

        fast = atomic.fsync

        def slow(fd: int) -> None:
            time.sleep(SLOW_SECONDS)
            fast(fd)

        atomic.fsync = slow
    from amux.app import main as amux

    return amux()


if __name__ == "__main__":
    sys.exit(main())
