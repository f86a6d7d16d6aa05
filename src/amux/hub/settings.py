"""The system's switches: saved at once, in force when the Hub next starts.

Rule 1: memory is off until the administrator turns it on (M6).
Rule 2: `hub/settings.json` is the only place; a broken file stops the start with its place
        named, and is never replaced by defaults.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from amux.core import home
from amux.core.strict import decode
from amux.disk import atomic
from amux.disk.tree import Root
from amux.errors import AmuxError, Corrupt, InvalidArgument

Policy: TypeAlias = Literal["shared", "per_principal"]

ENABLED = "memory.enabled"
POLICY = "isolation.policy"
NAMES = (ENABLED, POLICY)
MAX_BYTES = 64 * 1024  # ours has 60; a larger file is not ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One value of every switch."""

    memory_enabled: bool = False
    isolation_policy: Policy = "shared"

    def value(self, name: str) -> bool | str:
        """Give the value of one switch by its public name."""
        match name:
            case "memory.enabled":
                return self.memory_enabled
            case "isolation.policy":
                return self.isolation_policy
            case _:
                raise InvalidArgument(
                    "unknown setting", hint="known are " + ", ".join(NAMES), argument="name"
                )


def changed(settings: Settings, name: str, text: str) -> Settings:
    """Set one switch from the text that a person typed; refuses an unknown name or value."""
    settings.value(name)
    match name, text:
        case "memory.enabled", "true" | "false":
            return replace(settings, memory_enabled=text == "true")
        case "isolation.policy", "shared" | "per_principal":
            return replace(settings, isolation_policy=_policy(text))
        case _:
            hint = "true or false" if name == ENABLED else "shared or per_principal"
            raise InvalidArgument(f"{name} has no such value", hint=f"use {hint}", argument="value")


def parse(data: bytes) -> Settings:
    """Read the saved form, or refuse it as `corrupt` with the place of what is wrong."""
    try:
        found = decode(data)
    except AmuxError as error:
        raise _corrupt(error.message) from error
    if not isinstance(found, dict) or set(found) != {"memory_enabled", "isolation_policy"}:
        raise _corrupt("it does not hold exactly memory_enabled and isolation_policy")
    if not isinstance(found["memory_enabled"], bool):
        raise _corrupt("memory_enabled is neither true nor false")
    if found["isolation_policy"] not in {"shared", "per_principal"}:
        raise _corrupt("isolation_policy is neither shared nor per_principal")
    return Settings(
        memory_enabled=found["memory_enabled"],
        isolation_policy=_policy(str(found["isolation_policy"])),
    )


def render(settings: Settings) -> bytes:
    """Give the saved form, readable by a person."""
    return json.dumps(asdict(settings), indent=2).encode("utf-8") + b"\n"


class SettingsFile:
    """`hub/settings.json` of one root."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def load(self) -> Settings:
        """Read what is saved; the defaults where nothing was ever saved."""
        data = self._root.read(f"{home.HUB_DIR}/{home.SETTINGS_FILE}", max_bytes=MAX_BYTES)
        return Settings() if data is None else parse(data)

    def save(self, settings: Settings) -> None:
        """Save durably."""
        atomic.replace(self._root, f"{home.HUB_DIR}/{home.SETTINGS_FILE}", render(settings))


def _policy(text: str) -> Policy:
    if text == "shared":
        return "shared"
    return "per_principal"


def _corrupt(what: str) -> Corrupt:
    return Corrupt(
        f"{home.HUB_DIR}/{home.SETTINGS_FILE} is broken: {what}",
        hint="mend the file by hand, or remove it to start with memory off",
        reason="settings",
    )
