"""`config.toml` and the environment: read as they stand, refused by name, never written."""

import os
from pathlib import Path

import pytest

from amux import config, settings_file
from amux.config import Config, HubTable
from amux.core.address import Address
from amux.errors import AmuxError, InvalidArgument, Unauthenticated
from tests.support.network import configure, token_file

WHOLE = """
[hub]
listen = ["127.0.0.1:8484", "[::1]:8484"]
tls_cert = "hub.crt"
tls_key = "~/hub.key"
names = ["hub.example", "hub.example:443"]
shared_socket = "/run/amux/team.sock"
url = "https://hub.example:8484"
token_file = "token"
ca_file = "/etc/ca.pem"
"""


def refused(text: str) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as refusal:
        settings_file.parse(text)
    assert refusal.value.details["file"] == "config.toml"
    assert refusal.value.hint
    return refusal.value


def loaded(home: Path, **environ: str) -> Config:
    return config.load({"AMUX_HOME": str(home)} | environ, parse=settings_file.parse)


@pytest.mark.requirement("M1", "M54")
def test_every_key_is_read() -> None:
    table = settings_file.parse(WHOLE).hub
    assert table.listen == ("127.0.0.1:8484", "[::1]:8484")
    assert table.names == ("hub.example", "hub.example:443")
    assert (table.tls_cert, table.tls_key) == ("hub.crt", "~/hub.key")
    assert table.shared_socket == "/run/amux/team.sock"
    assert (table.url, table.token_file, table.ca_file) == (
        "https://hub.example:8484",
        "token",
        "/etc/ca.pem",
    )
    read = {name for name in HubTable.__slots__ if getattr(table, name)}
    assert read == set(HubTable.__slots__)


@pytest.mark.requirement("M1")
@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[hub]\n"])
def test_an_empty_file_sets_nothing(text: str) -> None:
    table = settings_file.parse(text).hub
    assert not [name for name in HubTable.__slots__ if getattr(table, name)]


@pytest.mark.requirement("M1", "M6")
@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("[hub]\nlisten = 8484", "hub.listen"),
        ("[hub]\nlisten = [8484]", "hub.listen"),
        ('[hub]\nlisten = "8484"', "hub.listen"),
        ('[hub]\nlisten = "127.0.0.1"', "hub.listen"),
        ('[hub]\nlisten = "127.0.0.1:65536"', "hub.listen"),
        ('[hub]\nlisten = "::1:8484"', "hub.listen"),
        ('[hub]\nlisten = "http://localhost:8484"', "hub.listen"),
        ('[hub]\nlistne = "127.0.0.1:8484"', "hub.listne"),
        ('[hub]\ntls_cert = "a"', "hub.tls_key"),
        ('[hub]\ntls_key = "a"', "hub.tls_cert"),
        ("[hub]\ntls_cert = true", "hub.tls_cert"),
        ('[hub]\nnames = ["http://a"]', "hub.names"),
        ('[hub]\nnames = ["a b"]', "hub.names"),
        ('[hub]\nnames = ["*"]', "hub.names"),
        ('[hub]\nshared_socket = ["/a"]', "hub.shared_socket"),
        ('[hub]\nshared_socket = ""', "hub.shared_socket"),
        ('[hub]\nurl = "hub.example"', "hub.url"),
        ('[hub]\nurl = "http://hub.example"', "hub.url"),
        ('[hub]\nurl = "/run/hub.sock"', "hub.url"),
        ("[hub]\nverify = false", "hub.verify"),
        ('[hub]\ntoken = "amux_x"', "hub.token"),
        ('[hub]\n"memory.enabled" = true', "hub.memory.enabled"),
        ("[hub.listen]\na = 1", "hub.listen"),
        ("hub = 1", "hub"),
        ("[[hub]]\n", "hub"),
        ("[memory]\nenabled = true", "memory"),
        ("enabled = true", "enabled"),
        ("[hub", ""),
        ("[hub]\nlisten = 'a'\nlisten = 'b'", ""),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, argument: str) -> None:
    assert refused(text).details["argument"] == argument


@pytest.mark.requirement("M1")
def test_a_refusal_names_the_line_and_holds_no_word_of_the_file() -> None:
    refusal = refused('[hub]\ntoken_file = "marker\n')
    assert "line 2" in refusal.hint
    assert "marker" not in str(refusal.body())


@pytest.mark.requirement("M1")
def test_a_file_that_others_may_write_is_refused_and_any_other_is_left_as_it_is(
    folder: Path,
) -> None:
    file = configure(folder, listen="127.0.0.1:1")
    for mode in (0o600, 0o400, 0o644):
        file.chmod(mode)
        assert loaded(folder).table.listen == ("127.0.0.1:1",)
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        with pytest.raises(InvalidArgument):
            _ = loaded(folder).table
    file.chmod(0o600)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    _ = loaded(folder).connection
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


@pytest.mark.requirement("M1")
@pytest.mark.parametrize("data", [b"\xff\xfe", b"#" * (64 * 1024 + 1), b"\0"])
def test_a_file_that_is_no_text_is_refused(folder: Path, data: bytes) -> None:
    file = folder / "config.toml"
    file.write_bytes(data)
    file.chmod(0o600)
    with pytest.raises(InvalidArgument):
        _ = loaded(folder).table


# --- where the Hub is ---


@pytest.mark.requirement("M54")
def test_with_nothing_set_the_hub_is_the_one_of_this_home(folder: Path) -> None:
    found = loaded(folder).connection
    assert found.address.socket_path == str(folder / "run" / "hub.sock")
    assert (found.token, found.binding, found.may_start) == ("", "", True)


@pytest.mark.requirement("M54")
def test_a_remote_hub_is_used_with_its_token_and_its_authority(folder: Path) -> None:
    token_file(folder, "amux_of_the_file")
    configure(folder, url="https://Hub.Example", token_file="token", ca_file="ca.pem")
    found = loaded(folder).connection
    assert (found.address.host, found.address.port) == ("hub.example", 443)
    assert (found.address.is_tls, found.may_start) == (True, False)
    assert found.token == "amux_of_the_file"
    assert found.ca_file == str(folder / "ca.pem")
    # The Hub of this home is another one, and is sent nothing that is not its own.
    assert (loaded(folder).local.token, loaded(folder).local.may_start) == ("", True)


@pytest.mark.requirement("M54")
def test_a_new_token_is_used_as_soon_as_it_stands_there(folder: Path) -> None:
    token_file(folder, "amux_old")
    configure(folder, url="https://hub.example", token_file="token")
    settings = loaded(folder)
    assert settings.connection.token == "amux_old"
    token_file(folder, "amux_new")
    assert settings.connection.token == "amux_new"


@pytest.mark.requirement("M63", "M54")
@pytest.mark.parametrize("hub", ["https://other.example", "/run/amux/other.sock"])
def test_the_token_of_the_file_is_never_sent_where_the_environment_points(
    folder: Path, hub: str
) -> None:
    token_file(folder, "amux_of_the_file")
    configure(folder, url="https://hub.example", token_file="token", ca_file="ca.pem")
    found = loaded(folder, AMUX_HUB=hub).connection
    assert (found.address.text, found.token, found.ca_file) == (hub, "", "")
    assert found.may_start is False
    given = str(token_file(folder, "amux_given", "given"))
    found = loaded(folder, AMUX_HUB=hub, AMUX_CREDENTIAL_FILE=given).connection
    assert found.token == "amux_given"


@pytest.mark.requirement("M63")
def test_a_bound_client_reads_its_environment_only(folder: Path) -> None:
    configure(folder, url="https://hub.example").write_text("not even TOML [")
    given = str(token_file(folder, "amux_given", "given"))
    bound = {"AMUX_MEMORY_BINDING": "amux1:h:global", "AMUX_CREDENTIAL_FILE": given}
    for found in (loaded(folder, **bound).connection, loaded(folder, **bound).local):
        assert found.address.socket_path == str(folder / "run" / "hub.sock")
        assert (found.token, found.binding) == ("amux_given", "amux1:h:global")


@pytest.mark.requirement("M63")
def test_a_bound_client_without_its_credential_calls_nobody(folder: Path) -> None:
    with pytest.raises(Unauthenticated):
        _ = loaded(folder, AMUX_MEMORY_BINDING="amux1:h:global").connection
    gone = str(folder / "gone")
    with pytest.raises(Unauthenticated):
        _ = loaded(
            folder, AMUX_MEMORY_BINDING="amux1:h:global", AMUX_CREDENTIAL_FILE=gone
        ).connection


@pytest.mark.requirement("M54", "M75")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o601])
def test_a_token_that_others_may_read_is_refused(folder: Path, mode: int) -> None:
    token_file(folder, "amux_x").chmod(mode)
    configure(folder, url="https://hub.example", token_file="token")
    with pytest.raises(InvalidArgument) as refusal:
        _ = loaded(folder).connection
    assert refusal.value.details["argument"] == "hub.token_file"
    assert "amux_x" not in str(refusal.value.body())


@pytest.mark.requirement("M54")
@pytest.mark.parametrize(
    "text",
    ["", "\n", "a b", "a\nHost: evil", "a\r\nX: y", "é", "\x7f", "x" * 2000],
)
def test_what_is_no_token_is_not_sent(folder: Path, text: str) -> None:
    token_file(folder, text)
    configure(folder, url="https://hub.example", token_file="token")
    with pytest.raises(InvalidArgument):
        _ = loaded(folder).connection


@pytest.mark.requirement("M69")
@pytest.mark.parametrize("text", ["a b", "a\r\nX: y", "a\n", "é", "x" * 2000])
def test_what_is_no_binding_is_not_sent(folder: Path, text: str) -> None:
    given = str(token_file(folder, "amux_given"))
    with pytest.raises(AmuxError):
        _ = loaded(folder, AMUX_MEMORY_BINDING=text, AMUX_CREDENTIAL_FILE=given).connection


@pytest.mark.requirement("M54")
@pytest.mark.parametrize(
    ("text", "host", "port", "authority"),
    [
        ("https://hub.example", "hub.example", 443, "hub.example"),
        ("https://hub.example/", "hub.example", 443, "hub.example"),
        ("HTTPS://HUB.EXAMPLE:8484", "hub.example", 8484, "hub.example:8484"),
        ("https://hub.example:443", "hub.example", 443, "hub.example"),
        ("https://[2001:db8::1]:8484", "2001:db8::1", 8484, "[2001:db8::1]:8484"),
        ("https://10.0.0.1", "10.0.0.1", 443, "10.0.0.1"),
        ("http://localhost:8484", "localhost", 8484, "localhost:8484"),
        ("http://127.0.0.1", "127.0.0.1", 80, "127.0.0.1"),
        ("http://[::1]:1", "::1", 1, "[::1]:1"),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int, authority: str) -> None:
    found = Address.parse(text, "x")
    assert (found.host, found.port, found.authority) == (host, port, authority)
    assert found.is_tls == text.lower().startswith("https")


@pytest.mark.requirement("M54")
@pytest.mark.parametrize(
    "text",
    [
        "hub.example", "hub.example:8484", "ftp://hub.example", "https://", "https:///x",
        "https://hub.example/amux", "https://hub.example?x", "https://hub.example#x",
        "https://user:pass@hub.example", "https://hub.example:0", "https://hub.example:65536",
        "https://hub.example:", "https://hub example", "https://hub.example\r\nX: y",
        "https://hub.example\n", "http://hub.example", "http://10.0.0.1", "http://127.evil.example",
        "http://localhost.evil.example", "http://[::2]", "run/hub.sock", "", "unix:/x", "/a\0b",
        "https://" + "a" * 600,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Address.parse(text, "AMUX_HUB")
    assert refusal.value.details["argument"] == "AMUX_HUB"


@pytest.mark.requirement("M1")
def test_without_a_file_nothing_is_made(folder: Path) -> None:
    _ = loaded(folder / "none").connection
    assert os.listdir(folder) == []


# --- launches ---


@pytest.mark.requirement("R27", "R28")
def test_where_runs_are_made_and_on_what_is_read() -> None:
    tables = settings_file.parse('[runtime]\nrun_dir = "/srv/runs"\npython = "/opt/python3"\n')
    assert (tables.runtime.run_dir, tables.runtime.python) == ("/srv/runs", "/opt/python3")
    assert settings_file.parse("[hub]\n").runtime.run_dir == ""


@pytest.mark.requirement("R27", "R28")
@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ('[runtime]\nrun_dir = "runs"', "runtime.run_dir"),
        ('[runtime]\npython = "/a\\u0000b"', "runtime.python"),
        ('[runtime]\npython = "/a\\nb"', "runtime.python"),
        ("[runtime]\npython = 3.11", "runtime.python"),
        ('[runtime]\nuser = "alice"', "runtime.user"),
        ("runtime = 1", "runtime"),
    ],
)
def test_what_is_not_known_of_launches_is_refused_by_name(text: str, argument: str) -> None:
    assert refused(text).details["argument"] == argument


GOOD = '{"hub": "/run/x.sock", "binding": "amux1:x:global", "credential": "amux_x"}'


@pytest.mark.requirement("R28", "M54")
def test_a_runs_connection_file_says_it_all_and_lets_no_hub_be_started(folder: Path) -> None:
    path = folder / "connection.json"
    path.write_text(GOOD)
    path.chmod(0o400)
    found = loaded(folder, AMUX_CREDENTIAL_FILE=str(path)).connection
    assert (found.address.socket_path, found.token) == ("/run/x.sock", "amux_x")
    assert (found.binding, found.may_start) == ("amux1:x:global", False)
    told = loaded(folder, AMUX_CREDENTIAL_FILE=str(path), AMUX_HUB="/run/y.sock").connection
    assert (told.address.socket_path, told.token) == ("/run/y.sock", "amux_x")


@pytest.mark.requirement("R28", "R29")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", 0o400),
        ("amux_x", 0o400),
        ("[]", 0o400),
        ('{"hub": "/run/x.sock", "credential": "amux_x"}', 0o400),
        (GOOD.replace('"amux_x"', "1"), 0o400),
        (GOOD.replace('"amux_x"', '"a b"'), 0o400),
        (GOOD.replace('"amux_x"', '"a\\r\\nb"'), 0o400),
        (GOOD.replace("/run/x.sock", "http://hub.example"), 0o400),
        (GOOD.replace("/run/x.sock", ""), 0o400),
        (GOOD + " " * 5000, 0o400),
        (GOOD, 0o444),
    ],
)
def test_a_connection_file_that_is_not_as_it_should_be_is_refused(
    text: str, mode: int, folder: Path
) -> None:
    path = folder / "connection.json"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(InvalidArgument) as caught:
        _ = loaded(folder, AMUX_CREDENTIAL_FILE=str(path)).connection
    assert "amux_x" not in str(caught.value.body())
