"""The environment, the person's `config.toml` and the socket's record, as plain values.

Rule 1: nobody else reads the environment.
Rule 2: reading settings builds nothing and writes nothing.
Rule 3: a client that was given a Hub or a binding by its environment reads no file of settings:
        what an agent was started with is not redirected by what stands in a folder (R20).
Rule 4: the token of `config.toml` goes to the Hub of `config.toml`, and nowhere else.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping

from amux.core import home
from amux.core.address import Address, Connection, is_header
from amux.errors import InvalidArgument, Unauthenticated

FILE = "config.toml"
FILE_MAX_BYTES = 64 * 1024  # a page of settings has a hundredth of this
TOKEN_MAX_BYTES = 4096
CONNECTION_SUFFIX = "/connection.json"  # of a run's file, which holds more than a token
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Tables:
    """All of `config.toml`."""

    __slots__ = ("hub", "runtime")

    def __init__(self) -> None:
        self.hub = HubTable()
        self.runtime = RuntimeTable()


class HubTable:
    """The table `[hub]` of `config.toml`; everything may be absent."""

    __slots__ = (
        "ca_file", "listen", "names", "shared_socket", "tls_cert", "tls_key", "token_file", "url",
    )  # fmt: skip

    def __init__(self) -> None:
        self.listen: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        self.tls_cert = self.tls_key = self.shared_socket = ""
        self.url = self.token_file = self.ca_file = ""


class RuntimeTable:
    """The table `[runtime]` of `config.toml`; everything may be absent."""

    __slots__ = ("python", "run_dir")

    def __init__(self) -> None:
        self.run_dir = self.python = ""


class Config:
    """What a person set for this process."""

    __slots__ = (
        "_parse", "_tables", "binding", "ca_file", "child_lease", "credential_file", "editor",
        "environment", "home", "hub", "no_autostart", "runtime_dir", "search_path", "temp_dir",
        "workspace",
    )  # fmt: skip

    def __init__(
        self,
        *,
        home: str,
        no_autostart: bool,
        editor: str,
        temp_dir: str,
        runtime_dir: str,
        search_path: str,
        hub: str = "",
        credential_file: str = "",
        binding: str = "",
        ca_file: str = "",
        workspace: str = "",
        child_lease: str = "",
        environment: Mapping[str, str] | None = None,
        parse: Callable[[str], Tables] | None = None,
    ) -> None:
        self.environment = environment or {}
        """All of it, for a process that is started with it."""
        self.home = home
        self.no_autostart = no_autostart
        self.editor = editor
        self.temp_dir = temp_dir
        self.runtime_dir = runtime_dir
        self.search_path = search_path
        self.hub = hub
        self.credential_file = credential_file
        self.binding = binding
        self.ca_file = ca_file
        self.workspace = workspace
        """AMUX_WORKSPACE: where the journal's start directory is (J12)."""
        self.child_lease = child_lease
        """AMUX_CHILD_LEASE: this process is a child agent's (T71)."""
        self._parse = parse
        self._tables: Tables | None = None

    @classmethod
    def nowhere(cls) -> "Config":
        """Give settings that point at nothing, for a refusal before any could be read."""
        return cls(
            home=os.devnull, no_autostart=True, editor="", temp_dir="", runtime_dir="",
            search_path="",
        )  # fmt: skip

    @property
    def socket_path(self) -> str:
        """Find the Hub's socket: at its usual place, or where the Hub recorded it (M45)."""
        usual = os.path.join(self.home, home.RUN_DIR, home.SOCKET_FILE)
        if len(os.fsencode(usual)) <= home.SOCKET_MAX_BYTES:
            return usual
        try:
            with open(os.path.join(self.home, home.RUN_DIR, home.SOCKET_RECORD), "rb") as record:
                return os.fsdecode(record.read(home.SOCKET_MAX_BYTES))
        except OSError:
            return usual  # no Hub has run here yet; connecting says so

    @property
    def table(self) -> HubTable:
        """Read `[hub]` of `config.toml`, once; refuses what is not as it should be."""
        return self._read().hub

    @property
    def runtime(self) -> RuntimeTable:
        """Read `[runtime]` of `config.toml`, once; refuses what is not as it should be."""
        return self._read().runtime

    @property
    def connection(self) -> Connection:
        """Say how this process reaches its Hub.

        The token is read anew each time: a process that lives for days follows a new one.
        """
        if self.hub or self.binding:
            own = Address.local(self.socket_path)
            address = Address.parse(self.hub, "AMUX_HUB") if self.hub else own
            # The socket of another Hub is for its owner to open.
            return self._to(address, may_start=address.socket_path == own.socket_path)
        if self.credential_file.endswith(CONNECTION_SUFFIX):
            return self._of_a_run()
        if self.table.url:
            address = Address.parse_url(self.table.url, "hub.url")
            return self._to(address, self.table, may_start=False)
        return self.local

    @property
    def local(self) -> Connection:
        """Say how this process reaches the Hub of this AMUX_HOME, whatever else is set."""
        is_given = bool(self.hub or self.binding)
        table = None if is_given or self.table.url else self.table
        return self._to(Address.local(self.socket_path), table, may_start=True)

    def path_of(self, text: str) -> str:
        """Give the path that a setting means: beneath the home folder, or beside the file."""
        return os.path.join(self.home, os.path.expanduser(text)) if text else ""

    def _of_a_run(self) -> Connection:
        """Go by a run's connection file alone: whoever lost the rest of a run's names."""
        found = _connection(self.credential_file)
        return Connection(
            Address.parse(found["hub"], "AMUX_CREDENTIAL_FILE"),
            token=found["credential"],
            binding=found["binding"],
            ca_file=found.get("ca_file", ""),
            may_start=False,
        )

    def _read(self) -> Tables:
        if self._tables is None:
            text = _settings_text(self.home)
            parse = self._parse
            self._tables = Tables() if text is None or parse is None else parse(text)
        return self._tables

    def _to(
        self, address: Address, table: HubTable | None = None, *, may_start: bool
    ) -> Connection:
        token_file, argument, ca_file = self.credential_file, "AMUX_CREDENTIAL_FILE", self.ca_file
        if table is not None and table.token_file and not token_file:
            token_file, argument = self.path_of(table.token_file), "hub.token_file"
        if table is not None and table.ca_file and not ca_file:
            ca_file = self.path_of(table.ca_file)
        if self.binding and not token_file:
            raise Unauthenticated(
                "a bound session has no credential",
                hint="set AMUX_CREDENTIAL_FILE; AMUX_MEMORY_BINDING grants nothing by itself",
            )
        if self.binding and not is_header(self.binding):
            raise InvalidArgument("this is no binding", argument="AMUX_MEMORY_BINDING")
        return Connection(
            address,
            token=_token(token_file, argument) if token_file else "",
            binding=self.binding,
            ca_file=ca_file,
            may_start=may_start,
        )


def load(
    environ: Mapping[str, str] = os.environ, *, parse: Callable[[str], Tables] | None = None
) -> Config:
    """Read the environment; refuses an AMUX_HOME that is no usable path.

    `parse` reads the text of `config.toml`, if there is one and once it is needed.
    """
    root = environ.get("AMUX_HOME") or os.path.join(os.path.expanduser("~"), ".amux")
    if "\0" in root or "\n" in root:
        raise InvalidArgument("AMUX_HOME holds a control character", argument="AMUX_HOME")
    return Config(
        home=os.path.abspath(os.path.expanduser(root)),
        no_autostart=environ.get("AMUX_NO_AUTOSTART") == "1",
        editor=environ.get("VISUAL") or environ.get("EDITOR") or "vi",
        temp_dir=environ.get("TMPDIR") or "/tmp",  # a folder of ours is made in it
        runtime_dir=environ.get("XDG_RUNTIME_DIR") or "",
        search_path=environ.get("PATH") or os.defpath,
        hub=environ.get("AMUX_HUB") or "",
        credential_file=environ.get("AMUX_CREDENTIAL_FILE") or "",
        binding=environ.get("AMUX_MEMORY_BINDING") or "",
        ca_file=environ.get("AMUX_CA_FILE") or "",
        workspace=environ.get("AMUX_WORKSPACE") or "",
        child_lease=environ.get("AMUX_CHILD_LEASE") or "",
        environment=environ,
        parse=parse,
    )


def _settings_text(root: str) -> str | None:
    """Read `config.toml`; None where there is none."""
    try:
        with open(os.path.join(root, FILE), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(FILE_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(FILE, f"make it a file that you may read ({_cause(error)})") from error
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unreadable(FILE, f"others may write it: chmod 600 {FILE}")
    if len(data) > FILE_MAX_BYTES:
        raise _unreadable(FILE, f"it may have {FILE_MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(FILE, "write it in UTF-8") from error


def _token(path: str, argument: str) -> str:
    """Read a token's file, which nobody else may read; a run's connection file has one too."""
    if path.endswith(CONNECTION_SUFFIX):
        return _connection(path)["credential"]
    text = _private(path, argument).decode("latin-1").strip()
    if not is_header(text):
        raise _unreadable(argument, "the credential's file holds one token and nothing else")
    return text


def _connection(path: str) -> dict[str, str]:
    """Read a run's connection file: Hub, binding and credential, each as a text."""
    argument = "AMUX_CREDENTIAL_FILE"
    try:
        found = json.loads(_private(path, argument))
    except ValueError:
        found = None
    if (
        not isinstance(found, dict)
        or not {"hub", "binding", "credential"} <= set(found)
        or not all(isinstance(text, str) for text in found.values())
        or not is_header(found["credential"])
        or not is_header(found["binding"])
    ):
        raise _unreadable(argument, "it is no connection file of a run")
    return found


def _private(path: str, argument: str) -> bytes:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(TOKEN_MAX_BYTES + 1)
    except OSError as error:
        raise Unauthenticated(
            "the credential's file cannot be read",
            hint=f"see what {argument} names",
            argument=argument,
            cause=_cause(error),
        ) from error
    if mode & OTHERS:
        raise _unreadable(argument, "others may read the credential's file: chmod 600 it")
    if len(data) > TOKEN_MAX_BYTES:
        raise _unreadable(argument, f"the credential's file may have {TOKEN_MAX_BYTES} bytes")
    return data


def _unreadable(argument: str, hint: str) -> InvalidArgument:
    return InvalidArgument("a file of settings cannot be used", hint=hint, argument=argument)


def _cause(error: OSError) -> str:
    return type(error).__name__
