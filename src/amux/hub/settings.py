"""The system's switches: saved at once, in force when the Hub next starts.

Rule 1: memory is off until the administrator turns it on (M6).
Rule 2: `hub/settings.json` is the only place; a broken file stops the start with its place
        named, and is never replaced by defaults.
"""

from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from amux.core import home
from amux.disk.tree import Root
from amux.errors import InvalidArgument
from amux.hub import saved
from amux.hub.saved import Saved

Policy: TypeAlias = Literal["shared", "per_principal"]

ENABLED = "memory.enabled"
POLICY = "isolation.policy"
NAMES = (ENABLED, POLICY)


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


def parse(found: object) -> Settings:
    """Read the saved form; `ValueError` says what is wrong with it."""
    kinds = {"memory_enabled": bool, "isolation_policy": str}
    fields = saved.record(found, kinds, "it")
    if fields["isolation_policy"] not in {"shared", "per_principal"}:
        raise ValueError("isolation_policy is neither shared nor per_principal")
    return Settings(
        memory_enabled=bool(fields["memory_enabled"]),
        isolation_policy=_policy(str(fields["isolation_policy"])),
    )


def opened(root: Root) -> Saved[Settings]:
    """Open the settings of a root; the defaults where nothing was ever saved."""
    path = f"{home.HUB_DIR}/{home.SETTINGS_FILE}"
    return Saved(root, path, parse=parse, plain=asdict, default=Settings())


def _policy(text: str) -> Policy:
    if text == "shared":
        return "shared"
    return "per_principal"
