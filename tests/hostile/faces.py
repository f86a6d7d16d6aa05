"""How bob reaches the Hub: each face takes the same attacks and gives back all that he sees."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from amux.errors import TABLE, Code
from amux.surface.cli.verb import Option, Positional, Verb
from amux.surface.cli.verbs import VERBS
from amux.wire.tools import CALLS, TARGETS
from tests.hostile import attacks
from tests.hostile.attacks import Attack
from tests.hostile.worlds import BOB_UID, KNOWN, Loot, World
from tests.support.network import port_of

Seen = list[tuple[str, bytes]]
Face = Callable[[World, Loot], Seen]
UNAUTHENTICATED = str(TABLE[Code.UNAUTHENTICATED].http).encode()


def spelled(
    method: str, target: str, body: bytes, *, host: str, token: str | None, binding: str | None,
    headers: dict[str, str],
) -> bytes:  # fmt: skip
    fields = {"Host": host, "Content-Type": "application/json", "Connection": "close"}
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    if binding is not None:
        fields["Amux-Memory-Binding"] = binding
    fields |= {"Content-Length": str(len(body))} | headers
    lines = [f"{method} {target} HTTP/1.1", *(f"{key}: {text}" for key, text in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + body


def posted(attack: Attack, world: World, host: str, *, by_kernel: bool = False) -> bytes:
    token = attack.token if attack.token is not None or by_kernel else world.bob
    body = json.dumps(attack.given).encode()
    return spelled(
        "POST", TARGETS[attack.call], body, host=host, token=token, binding=attack.binding,
        headers=attack.headers,
    )  # fmt: skip


def sent(connection: socket.socket, data: bytes) -> bytes:
    with connection:
        connection.settimeout(20)
        received = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(data)
            while chunk := connection.recv(65536):
                received += chunk
        return received


def all_of(world: World, loot: Loot) -> list[Attack]:
    return [*attacks.on_calls(loot), *attacks.on_credentials(loot, world)]


def owners_socket(world: World, loot: Loot) -> Seen:
    """Send by bearer token on the owner's socket: a token decides alone."""

    def send(data: bytes) -> bytes:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(world.hub.config.socket_path)
        return sent(connection, data)

    return _over(world, loot, send, "localhost")


def tcp(world: World, loot: Loot) -> Seen:
    """Send by bearer token over TCP."""
    port = port_of(world.hub)

    def send(data: bytes) -> bytes:
        return sent(socket.create_connection(("127.0.0.1", port)), data)

    seen = _over(world, loot, send, f"127.0.0.1:{port}")
    return [(label, answer.replace(str(port).encode(), b"PORT")) for label, answer in seen]


def _over(world: World, loot: Loot, send: Callable[[bytes], bytes], host: str) -> Seen:
    good = posted(Attack(label="", call="get", given={"path": "MEMORY.md"}), world, host)
    found: Seen = []
    for attack in all_of(world, loot):
        answer = send(posted(attack, world, host))
        found.append((attack.label, answer))
        if answer[9:12] == UNAUTHENTICATED:
            send(good)  # else the next refusal would wait for this one (M76)
    for method, target in attacks.on_targets(loot):
        for token in (world.bob, None):
            request = spelled(
                method, target, b"{}", host=host, token=token, binding=None, headers={}
            )
            answer = send(request)
            found.append((f"{method} {target} {'' if token else 'by nobody'}", answer))
            if answer[9:12] == UNAUTHENTICATED:
                send(good)
    return found


# What another uid does: requests come in on standard input, answers go out, length first. It
# becomes bob once Python is loaded, which bob may not be able to read.
_KNOCK = """
import os, socket, struct, sys
uid = int(sys.argv[2])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
while head := read(4):
    data = read(struct.unpack("!I", head)[0])
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    connection.connect(sys.argv[1])
    received = b""
    try:
        connection.sendall(data)
        while chunk := connection.recv(65536):
            received += chunk
    except (ConnectionResetError, BrokenPipeError):
        pass
    connection.close()
    write(struct.pack("!I", len(received)) + received)
"""


def shared_socket(world: World, loot: Loot) -> Seen:
    """Send as bob's own uid over the shared socket: the kernel says who he is."""
    tried = [one for one in attacks.on_calls(loot) if one.token is None]
    requests = [posted(one, world, "localhost", by_kernel=True) for one in tried]
    framed = b"".join(len(one).to_bytes(4, "big") + one for one in requests)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _KNOCK, world.shared_socket, str(BOB_UID)],
        input=framed, stdout=subprocess.PIPE, check=True, timeout=120,
    )  # fmt: skip
    found: Seen = []
    place = 0
    for attack in tried:
        length = int.from_bytes(done.stdout[place : place + 4], "big")
        found.append((attack.label, done.stdout[place + 4 : place + 4 + length]))
        place += 4 + length
    return found


def mcp_stdio(world: World, loot: Loot) -> Seen:
    """Call the tools of `amux mcp`, as bob and as his agent."""
    found: Seen = []
    agent = world.bob_home / "agent-token"
    agent.write_text(world.bob_agent)
    agent.chmod(0o600)
    for name, more in (
        ("bob", {}),
        ("agent", {"AMUX_CREDENTIAL_FILE": str(agent), "AMUX_MEMORY_BINDING": world.bob_binding}),
        ("agent, hers", {"AMUX_CREDENTIAL_FILE": str(agent), "AMUX_MEMORY_BINDING": loot.binding}),
    ):
        with world.mcp(**more) as process:
            process.initialize()
            for attack in attacks.on_tools(loot):
                answer = process.request(
                    "tools/call", {"name": attack.call, "arguments": attack.given}
                )
                del answer["id"]
                found.append((f"{name}: {attack.label}", json.dumps(answer).encode()))
            for method in ("resources/list", "prompts/list", "resources/read", "server/discover"):
                answer = process.request(method, {"uri": f"amux://{loot.principal}"})
                del answer["id"]
                found.append((f"{name}: {method}", json.dumps(answer).encode()))
    return found


def mcp_http(world: World, loot: Loot) -> Seen:
    """Call the tools at `/mcp`, as bob and as his agent."""
    found: Seen = []
    for name, token, binding in (
        ("bob", world.bob, None),
        ("agent", world.bob_agent, world.bob_binding),
        ("agent, hers", world.bob_agent, loot.binding),
    ):
        for attack in attacks.on_tools(loot):
            answer = called_at_mcp(world, attack.call, attack.given, token, binding)
            found.append((f"{name}: {attack.label}", answer))
    return found


def called_at_mcp(
    world: World, tool: str, given: dict[str, object], token: str, binding: str | None
) -> bytes:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
         "params": {"name": tool, "arguments": given}}
    )  # fmt: skip
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(world.hub.config.socket_path)
    request = spelled(
        "POST", "/mcp", body.encode(), host="localhost", token=token, binding=binding,
        headers=headers,
    )  # fmt: skip
    return sent(connection, request)


# Verbs that ask no Hub, or only the one of this AMUX_HOME; every other one is attacked.
NOT_OF_A_HUB = {
    "hub start", "hub stop", "hub restart", "hub serve", "uninstall", "mcp", "mcp entry",
    "completion", "man", "help", "protocol",
}  # fmt: skip
# These ask no Hub; what they make by chance in his own home, and digests and sizes of it, say
# nothing: a number of a process may have more digits in one world than in the other.
JOURNAL = {"journal", "task", "workspace"}
CHANCE = re.compile(rb"\b(?:plan-)?[0-9a-f]{12,64}\b|(?<=\"bytes\":)[0-9]+")


def cli(world: World, loot: Loot) -> Seen:
    """Run the verbs, as bob."""
    lines = [line for name, verb in VERBS.items() if name not in NOT_OF_A_HUB
             for line in _lines_of(verb, loot)]  # fmt: skip
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("AMUX_")
    } | world.his_environment()

    def run(words: list[str]) -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "amux", *words], env=environment, cwd=world.bob_home,
            input=b"x", capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        said = b"%d\n%s\n%s" % (done.returncode, done.stdout, done.stderr)
        return CHANCE.sub(b"CHANCE", said) if words[0] in JOURNAL else said

    # One after the other, since some of them write; two worlds run beside each other.
    return [(" ".join(words), run(words)) for words in lines]


def _lines_of(verb: Verb, loot: Loot) -> list[list[str]]:
    words = [*verb.words]
    base = [_hers(one, loot) for one in verb.positionals if one.is_required]
    needed = [f"--{one.name}={_hers(one, loot)}" for one in verb.options if one.is_required]
    lines = [[*words, *base, *needed]]
    for place, one in enumerate(verb.positionals):
        if not one.choices:
            lines += [
                [*words, *needed, "--", *base[:place], shape, *base[place + 1 :]]
                for shape in _tried(one.key, loot)
            ]
    for option in verb.options:
        if option.kind == "flag":
            if option.name != "follow":
                lines.append([*words, *base, *needed, f"--{option.name}"])
        elif not option.choices:
            tried = ["7"] if option.kind == "integer" else _tried(option.key, loot)
            others = [word for word in needed if not word.startswith(f"--{option.name}=")]
            lines += [[*words, *base, *others, f"--{option.name}={shape}"] for shape in tried]
    return [[word for word in line if "\0" not in word] for line in lines]


def _hers(one: Positional | Option, loot: Loot) -> str:
    if one.choices:
        return one.choices[0]
    key = one.key
    hers = {
        "principal": loot.principal, "id": loot.token_id, "query": KNOWN, "session": loot.session,
        "expected_revision": loot.revision, "new": "notes/moved.md",
    }  # fmt: skip
    return hers.get(key, loot.paths[0])


def _tried(key: str, loot: Loot) -> list[str]:
    if key in {"path", "old", "remove", "path_prefix", "file"}:
        return attacks.paths(loot)[:5]
    if key == "cursor":
        return [loot.cursor]
    return [loot.principal, loot.alias, loot.session, KNOWN]


# Each module of `surface/` that serves somebody, and how bob comes through it.
FACES: dict[str, tuple[str, Face]] = {
    "owners_socket": ("rpc", owners_socket),
    "tcp": ("rpc", tcp),
    "shared_socket": ("rpc", shared_socket),
    "mcp_stdio": ("mcp", mcp_stdio),
    "mcp_http": ("mcp_http", mcp_http),
    "cli": ("cli", cli),
}
NO_FACES = {"deferred"}  # loads one of them late


def in_both(face: Face, worlds: list[World], loot: Loot) -> list[Seen]:
    """Attack both worlds at once."""
    with ThreadPoolExecutor(len(worlds)) as threads:
        return list(threads.map(lambda world: face(world, loot), worlds))


assert set(TARGETS) == set(CALLS)
