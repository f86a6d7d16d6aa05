"""What a start costs: an agent pays for it in every call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_hub import FakeHub

# Each costs 4 to 40 ms; what is needed rarely is loaded late.
FORBIDDEN = {
    "argparse", "asyncio", "dataclasses", "email", "hashlib", "http", "http.client", "inspect",
    "logging", "pathlib", "shutil", "ssl", "subprocess", "tempfile", "textwrap", "threading",
    "tomllib", "traceback", "typing", "unicodedata", "urllib", "uuid", "zipfile",
    "starlette", "uvicorn", "stringzilla", "mcp",
}  # fmt: skip
BUDGET = 3.0  # times `python -c pass` of the same venv


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "AMUX_HOME": str(home), "AMUX_NO_AUTOSTART": "1"}


def loaded(home: Path, *words: str) -> set[str]:
    program = (
        "import sys\nfrom amux.app import main\nsys.argv = ['amux', *sys.argv[1:]]\n"
        "main()\nprint(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        check=True,
        env=environment(home),
    )
    json.loads(done.stdout)
    return set(done.stderr.decode().split())


@pytest.mark.requirement("M49")
def test_show_loads_only_what_it_needs(home: Path, hub: FakeHub) -> None:
    hub.documents["a.md"] = b"x"
    found = loaded(home, "memory", "show", "a.md")
    # An editable install's .pth loads some of these before amux runs.
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, check=True
    )
    found -= set(bare.stdout.decode().split())
    # Its own traceback is for mistakes; app needs it, and it is small.
    assert not found & (FORBIDDEN - {"traceback", "textwrap"})
    ours = {name for name in found if name.startswith("amux.surface.cli.")}
    assert ours == {
        f"amux.surface.cli.{name}"
        for name in (
            "calls", "core_verbs", "main", "memory", "output", "parse", "render", "rows", "verb",
        )
    }  # fmt: skip
    assert not {name for name in found if name.startswith(("amux.hub", "amux.disk"))}
