"""Rows of the memory's acceptance table with the clients on other machines.

The tests are those of `tests/acceptance`; here `amux mcp` runs in one network namespace, the
command line in another, and the Hub, behind TLS, in a third. RPC is the owner's, at the Hub.
"""

import subprocess
from collections.abc import Iterator

import pytest

from tests.acceptance.test_outside import test_each_of_200_edits_by_another_program_is_seen_at_once
from tests.acceptance.test_reading import test_a_query_is_words_and_never_a_pattern
from tests.acceptance.test_sessions import (
    test_a_document_is_in_one_file_alone_and_after_forget_in_none,
    test_a_preference_is_corrected_and_forgotten_everywhere_by_two_agents,
)
from tests.acceptance.test_writers import (
    test_of_two_processes_that_create_at_once_one_wins_each_round,
    test_three_clients_that_append_to_one_document_lose_no_line,
)
from tests.support.faces import Cli, Face, Faces
from tests.support.machines import Client, Far
from tests.support.mcp_lines import McpProcess

__all__ = [
    "test_a_document_is_in_one_file_alone_and_after_forget_in_none",
    "test_a_preference_is_corrected_and_forgotten_everywhere_by_two_agents",
    "test_a_query_is_words_and_never_a_pattern",
    "test_each_of_200_edits_by_another_program_is_seen_at_once",
    "test_of_two_processes_that_create_at_once_one_wins_each_round",
    "test_three_clients_that_append_to_one_document_lose_no_line",
]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_root")]


class FarCli(Cli):
    """The command on another machine."""

    def __init__(self, client: Client) -> None:
        super().__init__(client.here)
        self._client = client

    def spawn(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self._client.run(*words, stdin=stdin)


class FarFaces(Faces):
    """The faces of a Hub, of which two are on other machines."""

    def __init__(self, far: Far, process: McpProcess) -> None:
        super().__init__(far.hub, process)
        self._agents, commands = far.clients
        self.cli = FarCli(commands)
        self.all: tuple[Face, ...] = (self.rpc, self.mcp, self.cli)

    def mcp_process(self, *words: str) -> McpProcess:
        return mcp_at(self._agents, *words)


def mcp_at(client: Client, *words: str) -> McpProcess:
    launcher = ("ip", "netns", "exec", client.namespace)
    process = McpProcess(client.here.home, *words, launcher=launcher)
    process.initialize()
    return process


@pytest.fixture
def faces(far: Far) -> Iterator[Faces]:
    with mcp_at(far.clients[0], "--tools=memory") as process:
        yield FarFaces(far, process)
