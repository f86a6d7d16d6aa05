"""uid 0 administers the home of somebody else, with no Hub running."""

import os
from pathlib import Path

import pytest

from tests.support.hub import RunningHub

OTHER = 12345  # nobody's on this machine; the kernel does not mind


@pytest.mark.slow
@pytest.mark.requirement("M47")
@pytest.mark.usefixtures("as_root")
def test_what_root_sets_in_anothers_home_is_that_others(tmp_path: Path) -> None:
    for folder in tmp_path.parents:  # the other must reach it
        if folder.stat().st_uid == os.geteuid() and "pytest" in str(folder):
            folder.chmod(0o755)
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, OTHER, OTHER)
    hub = RunningHub(home)
    hub.enable()
    made = list(home.rglob("*"))
    assert home / "hub" / "settings.json" in made
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(OTHER, OTHER)}
