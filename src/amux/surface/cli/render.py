"""Readable forms of answers, for a person at a terminal.

Rule 1: nothing is left out that changes what an answer means: incomplete, truncated, relaxed,
        a restart that is due.
Rule 2: these are for eyes; scripts get JSON, whose form is promised.
"""

from collections.abc import Mapping

Plain = Mapping[str, object]


def search(value: Plain) -> str:
    """Show hits as path:line and snippet, and what the answer does not prove."""
    lines: list[str] = []
    for hit in rows(value, "hits"):
        lines.append(f"{hit['path']}:{hit['line']}  ({_short(hit['revision'])})")
        lines += [f"    {line}" for line in str(hit["snippet"]).rstrip("\n").split("\n")]
        if hit["truncated"]:
            lines.append("    …")
        lines.append("")
    if not lines:
        lines = ["no document holds any of the words", ""]
    terms = ", ".join(f"{row['term']} in {row['documents']}" for row in rows(value, "terms"))
    skipped = value.get("skipped_files")
    lines.append(f"{value.get('scanned_files')} documents searched; {terms}")
    if skipped:
        lines.append(f"{skipped} files are no documents: amux memory check")
    if value.get("relaxed"):
        lines.append("relaxed: nothing matched literally, so parts of the words were searched")
    if value.get("truncated"):
        lines.append("truncated: there are more hits; raise --limit or narrow the words")
    if value.get("incomplete"):
        lines.append("incomplete: not everything was searched; narrow it with --path-prefix")
    return "\n".join(lines)


def show(value: Plain) -> str:
    """Show the content, then where it lies in the document and its revision."""
    if not value["exists"]:
        return f"{value['path']}: there is no such document (revision {value['revision']})"
    content = str(value["content"])
    footer = (
        f"-- {value['path']}, lines {value['start_line']}-{value['end_line']} "
        f"of {value['total_lines']}, {value['total_bytes']} bytes\n-- revision {value['revision']}"
    )
    if value["truncated"]:
        footer += f"\n-- truncated: go on with --offset {value['next_offset']}"
    return (content if content.endswith("\n") or not content else content + "\n") + footer


def listing(value: Plain) -> str:
    """Show one document a line."""
    lines = [
        f"{row['bytes']:>7}  {str(row['modified'])[:19]}  {_short(row['revision'])}  {row['path']}"
        for row in rows(value, "documents")
    ] or ["no documents"]
    if value.get("next_cursor"):
        lines.append(f"-- more: --cursor {value['next_cursor']}")
    return "\n".join(lines)


def check(value: Plain) -> str:
    """Show each file that is no document, with its reason."""
    lines = [f"{row['reason']}: {row['path']}" for row in rows(value, "broken")]
    if value.get("truncated"):
        lines.append("-- truncated: there are more")
    return "\n".join(lines or ["every file is a document"])


def discarded(value: Plain) -> str:
    """Show what was removed."""
    return f"removed {value['path']}"


def upsert(value: Plain) -> str:
    """Show the new revision."""
    word = "saved" if value["changed"] else "unchanged"
    return f"{word} {value['path']}\n-- revision {value['revision']}"


def forget(value: Plain) -> str:
    """Show what is gone, and what a forget leaves."""
    word = "was already gone" if value["already_absent"] else "is forgotten"
    return f"{value['path']} {word}\n-- kept: {value['kept']}"


def moved(value: Plain) -> str:
    """Show where the document is now."""
    return f"moved {value['old']} to {value['path']}\n-- revision {value['revision']}"


def hub(value: Plain) -> str:
    """Show whether a Hub runs, and what it is."""
    if not value["running"]:
        return ("stopped; " if value.get("stopped") else "") + f"no Hub runs for {value['root']}"
    return "\n".join(
        [
            f"Hub {value.get('version')} runs, pid {value.get('pid')}",
            f"root    {value.get('root')}",
            f"socket  {value.get('socket')}",
            *_settings(value),
            *_platform(value.get("platform")),
        ]
    )


def system(value: Plain) -> str:
    """Show the settings, and whether a restart is due."""
    return "\n".join([f"root    {value.get('root')}", *_settings(value)])


def setting(value: Plain) -> str:
    """Show one setting."""
    return "\n".join(_setting(str(value["name"]), value))


def principal(value: Plain) -> str:
    """Show whether a principal may work."""
    return f"{value['principal']} is {'enabled' if value['enabled'] else 'disabled'}"


def alias(value: Plain) -> str:
    """Show whose an alias is now."""
    if value.get("removed"):
        return f"{value['alias']} is nobody's"
    return f"{value['alias']} is {value['principal']}"


def principals(value: Plain) -> str:
    """Show one principal a line."""
    lines = [
        f"{row['principal']}{'' if row['enabled'] else ' (disabled)'}  {_word(row['aliases'])}"
        for row in rows(value, "principals")
    ]
    return "\n".join(lines + _cut(value))


def token(value: Plain) -> str:
    """Show a token, this once, and what it is."""
    return f"{value['token']}\n-- shown once: keep it in a private file\n-- {_token(value)}"


def tokens(value: Plain) -> str:
    """Show one token a line, without what proves it."""
    lines = [_token(row) for row in rows(value, "tokens")] or ["no tokens"]
    return "\n".join(lines + _cut(value))


def revoked(value: Plain) -> str:
    """Show which token works no more."""
    return f"{value['id']} is revoked"


def audit(value: Plain) -> str:
    """Show one line of the trail; nothing for an intent whose outcome has its own line."""
    if value.get("state") in {"closed", "running"}:
        return ""
    who = [value.get("actor") or value.get("peer") or "somebody", value.get("principal") or "-"]
    if value.get("session"):
        who.append(f"session {value['session']}")
    parts = [str(value["time"])[:19], *map(str, who), str(value.get("verb"))]
    parts += [str(value[name]) for name in ("path", "subject", "made") if value.get(name)]
    if value.get("before") or value.get("after"):
        parts.append(f"{_short(value.get('before', '?'))} -> {_short(value.get('after', '?'))}")
    lost = "no outcome: a crash cut it off, only the document tells whether it happened"
    parts.append(lost if value.get("state") else str(value.get("outcome")))
    gap = value.get("audit_gap")
    told = f"-- {gap} lines before this one could not be written\n" if gap else ""
    return told + "  ".join(parts)


def removal(value: Plain) -> str:
    """Show what uninstall removes, or has removed, and what it leaves."""
    head = "would remove:" if value["dry_run"] else "removed:"
    lines = [head, *(f"    {path}" for path in _paths(value, "remove"))]
    lines += ["left:", *(f"    {path}" for path in _paths(value, "keep"))]
    return "\n".join(lines)


def _settings(value: Plain) -> list[str]:
    settings = value.get("settings")
    lines: list[str] = []
    if isinstance(settings, dict):
        for name, one in settings.items():
            lines += _setting(str(name), one)
    if value.get("restart_due"):
        lines.append("a restart is due: amux hub restart")
    return lines


def _setting(name: str, value: Plain) -> list[str]:
    saved, effective = _word(value.get("saved")), _word(value.get("effective"))
    if value.get("effective") is None or saved == effective:
        return [f"{name} = {saved}"]
    return [f"{name} = {effective}, saved for the next start: {saved}"]


def _platform(value: object) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [f"platform  {name}: {_word(one)}" for name, one in value.items()]


def rows(value: Plain, name: str) -> list[dict[str, object]]:
    """Give a list of objects that stands in an answer."""
    found = value.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _paths(value: Plain, name: str) -> list[str]:
    paths = value.get(name)
    return [str(path) for path in paths] if isinstance(paths, list) else []


def _token(value: Plain) -> str:
    acts_for = f", acts for {value['acts_for']}" if value.get("acts_for") else ""
    session = f", session {value['session']}" if value.get("session") else ""
    if value.get("revoked"):
        life = f"revoked {str(value['revoked'])[:19]}"
    else:
        until = str(value["expires"])[:19] if value.get("expires") else "revoked"
        life = f"{'until' if value['live'] else 'dead since'} {until}"
    label = f"  {value['label']}" if value.get("label") else ""
    return f"{value['id']}  {value['kind']} {value['principal']}{acts_for}{session}, {life}{label}"


def _cut(value: Plain) -> list[str]:
    return ["-- truncated: there are more"] if value.get("truncated") else []


def _short(revision: object) -> str:
    return str(revision)[:12]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)
