"""Measure every budget and say which are kept; the exit status is 1 where one is not."""

import argparse
import json
import os
import sys

from bench import isolation, journal, launches, search, starts, tasks, writes

PARTS = {
    "starts": starts.figures,
    "launches": launches.figures,
    "isolation": isolation.figures,
    "writes": writes.figures,
    "search": search.figures,
    "journal": journal.figures,
    "tasks": tasks.figures,
}


def main() -> int:
    """Run the parts that were asked for and print a line a budget."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it would have every start compile anew
    missed = 0
    for name, figures in PARTS.items():
        if given.only not in {None, name}:
            continue
        for figure in figures():
            missed += not figure.is_kept
            print(_json(figure) if given.json else _line(figure), flush=True)
    if missed:
        print(f"{missed} over budget", file=sys.stderr)
    return 1 if missed else 0


def _json(figure: search.Figure) -> str:
    return json.dumps(
        {name: getattr(figure, name) for name in (*figure.__slots__, "value", "is_kept")}
    )


def _line(figure: search.Figure) -> str:
    verdict = "ok  " if figure.is_kept else "OVER"
    if figure.bound is None:
        verdict, bound = "    ", ""
    elif figure.peer is None:
        bound = f"<= {figure.bound:g} {figure.unit}"
    else:
        bound = f"<= {figure.bound:.3f}"
    if figure.peer is None:
        shown = f"{figure.ours:8.2f} {figure.unit:<3}{'':26} {bound}"
    else:
        shown = (
            f"{figure.ours:8.2f} {figure.unit:<3} to {figure.peer:8.2f} {figure.unit:<3}"
            f" = {figure.value:7.3f}  {bound}"
        )
    return f"{verdict} {figure.name:<40} {shown:<62} {figure.of}"


if __name__ == "__main__":
    sys.exit(main())
