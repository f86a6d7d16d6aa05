"""The real agents answer from the scripted model, without anything of amux."""

from collections.abc import Callable

import pytest

from tests.support import agents
from tests.support.agents import Place
from tests.support.model_server import ModelServer, say

pytestmark = [pytest.mark.slow, pytest.mark.agents]


def codex(place: Place, version: str) -> list[str]:
    place.configure_codex()
    command = place.program("codex", agents.codex(version))
    return [str(command), "exec", "--skip-git-repo-check", "please @play hello"]


def claude(place: Place, _: str) -> list[str]:
    command = place.program("claude", agents.claude())
    return [str(command), "-p", "please @play hello"]


def pi(place: Place, version: str) -> list[str]:
    command = place.program("pi", agents.pi(version))
    words = ["-p", "--provider", "fake", "--model", "fake-model", "please @play hello"]
    return [str(command), *words]


@pytest.mark.parametrize(
    ("of", "version"),
    [(codex, "0.171.0"), (codex, "0.153.4"), (claude, "2.1.332"), (pi, "1.6.0"), (pi, "0.73.1")],
)
def test_an_agent_of_the_pinned_release_answers_from_the_script(
    of: Callable[[Place, str], list[str]], version: str, place: Place, model: ModelServer
) -> None:
    model.scripts["hello"] = [say("hello from the script")]
    argv = of(place, version)
    done = place.run(*argv)
    assert done.returncode == 0, done.stderr
    assert b"hello from the script" in done.stdout
    assert len(model.of("hello")) == 1
    # Not a word of amux, not a tool: this is what an unbound launch must equal.
    assert not model.of("hello")[0].where("amux")
    told = place.run(argv[0], "--version")
    assert version in (told.stdout + told.stderr).decode()
