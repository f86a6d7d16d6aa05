"""The names that amux makes in AMUX_HOME and on this machine, and the layout's version.

Rule 1: every name that amux makes stands here, so that `amux uninstall` can list them all.
Rule 2: `config.toml` and `agents.toml` are the person's own: read, never written.
"""

import zlib

LAYOUT = 1  # grows with every change of what stands where; see hub/upgrade.py

LAYOUT_FILE = "layout"
MEMORY_DIR = "memory"
HUB_DIR = "hub"
RUN_DIR = "run"
SESSIONS_DIR = "sessions"  # a directory a session that amux started here
HOMES_DIR = "homes"  # a home an agent that is started with a private one: logins, its own files

SETTINGS_FILE = "settings.json"  # in HUB_DIR
IDENTITY_FILE = "identity.json"  # in HUB_DIR: who is who
BINDINGS_FILE = "bindings.json"  # in HUB_DIR: which session was bound to what
AUDIT_FILE = "audit.jsonl"  # in HUB_DIR: who did what, when
SECRET_FILE = "secret"  # in HUB_DIR: keys what the Hub hands out and wants to recognise
SOCKET_FILE = "hub.sock"  # in RUN_DIR, as are the next six
SOCKET_RECORD = "hub.socket"  # where the socket is, if its usual path is too long
SHARED_RECORD = "hub.shared"  # where the shared socket is, while a Hub has one
LOCK_FILE = "hub.lock"
PID_FILE = "hub.pid"
LOG_FILE = "hub.log"
EDIT_PREFIX = "edit-"
PROGRAMS_FILE = "programs.json"  # in RUN_DIR: what programs said of themselves; derived
BUNDLE_FILE = "amux.zip"  # in RUN_DIR: the agent's side, for runs of other users; derived

SESSION_FILE = "session.json"  # in a session's directory, as are the next five
TIMELINE_FILE = "timeline.jsonl"
CREDENTIAL_FILE = "credential"  # only while a run lives
SESSION_LOCK_FILE = "lock"
FILES_DIR = "files"  # of one run
ELSEWHERE_FILE = "elsewhere.json"  # what a run made in other places; only while it lives

RUNS_DIR = "/var/lib/amux/runs"  # of this machine: a directory a run of another user
SHARED_DIR = "/run/amux"  # of this machine: sockets for other uids, one a Hub

OWNED = (LAYOUT_FILE, MEMORY_DIR, HUB_DIR, RUN_DIR, SESSIONS_DIR, HOMES_DIR)
KEPT = ("config.toml", "agents.toml")

SOCKET_MAX_BYTES = 107  # sockaddr_un holds 108 bytes, its final NUL among them


def short_socket_name(root: str) -> str:
    """Name the socket of a root whose own path is too long for a socket."""
    return f"amux-{zlib.crc32(root.encode('utf-8', 'surrogateescape')):08x}.sock"
