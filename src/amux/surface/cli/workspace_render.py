"""Readable forms of what a workspace's set-up did and how it stands.

Rule 1: these are for eyes; scripts get JSON, whose form is promised.
"""

from collections.abc import Mapping

from amux.surface.cli.render import rows

Plain = Mapping[str, object]
_DONE = ("created", "changed", "removed", "left", "unchanged")
_APART = ("findings", "warnings", "schemaVersion")


def receipt(value: Plain) -> str:
    """Show what became of each path, then what was odd, with what there is to paste."""
    lines = [f"{value['root']}"]
    for outcome in _DONE:
        paths = value.get(outcome)
        if isinstance(paths, list):
            lines += [f"{outcome:<9}  {path}" for path in paths]
    for warning in rows(value, "warnings"):
        place = warning.get("path") or warning.get("base") or ""
        lines.append(f"warning    {warning['code']}  {place}".rstrip())
        if warning.get("text"):
            lines += ["", "paste into it:", "", str(warning["text"])]
    return "\n".join(lines)


def doctor(value: Plain) -> str:
    """Show how it stands, then each finding with what to do."""
    lines: list[str] = []
    for key, one in value.items():
        if key in _APART:
            continue
        listed = rows(value, key) if isinstance(one, list) else []
        if listed:
            lines += [f"{key}:", *(f"  {spelled(row)}" for row in listed)]
        else:
            lines.append(f"{key}: {spelled(one)}")
    for finding in rows(value, "findings"):
        lines += [f"- {finding['what']}", f"  {finding['do']}"]
    return "\n".join(lines)


def spelled(value: object) -> str:
    """Spell a value of a doctor's answer in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {spelled(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(spelled(one) for one in value) or "none"
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
