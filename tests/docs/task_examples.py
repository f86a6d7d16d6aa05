"""The tasks that the examples of `amux task …` suppose, made by the same command line."""

import json

from tests.docs.shell import Shell

NAME = "export endpoint"
ADMIT = {
    "instruction": "fix the stale totals",
    "taskKind": "bugs",
    "displayName": NAME,
    "overview": "The totals lag one day.",
}
REQUEST = {"instruction": "fix the stale totals", "taskKind": "bugs", "routeKey": NAME}
MAKE_IT = {"task start", "task admit", "task ingress", "task list", "task revoke"}


def prepare(shell: Shell, command: str) -> str:
    """Bring a task to where an example begins, and put what receipts gave into the example."""
    shell.environment["AMUX_SESSION"] = "demo"
    _write(shell, "task.json", ADMIT)
    _write(shell, "request.json", REQUEST)
    verb = " ".join(command.split()[1:3])
    if verb in MAKE_IT and "bind" not in command:
        return command
    admitted = _run(shell, "admit", ADMIT)
    confirm = admitted["nextCall"]["arguments"]
    owner = str(admitted["owner"])
    filled = (
        command.replace("OWNER", owner)
        .replace("FILE", confirm["artifactPath"])
        .replace("DIGEST", confirm["artifactSha256"])
    )
    if verb == "task confirm":
        return filled
    confirmed = _run(shell, "confirm", {**confirm, "sourceMessage": "yes, go on"})
    quoted = {
        "task": NAME,
        "owner": owner,
        "contextDigest": confirmed["writeContext"]["contextDigest"],
    }
    change = {**quoted, "op": "begin", "targets": ["src/export.py"]}
    _write(shell, "change.json", change)
    relative = admitted["taskRootRelative"]
    evidence = {
        "ecr": f"{relative}/review.md",
        "report": f"{admitted['reportDirectory']}/01--run.md",
        "completion": f"{relative}/done.md",
    }
    for path in evidence.values():
        file = shell.cwd / ".devcodex" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path}\n", encoding="utf-8")
    _write(shell, "evidence.json", {**quoted, "evidence": evidence})
    item = {
        "displayName": "a part",
        "mode": "read-only",
        "allowedPaths": ["src/"],
        "expectedWrites": [],
        "sharedSurfaces": [],
        "sessionPrompt": "look",
        "validationRoute": "none",
        "stopCondition": "seen",
    }
    items = [{**item, "workItemId": name, "isolationRoot": str(shell.home / name)} for name in "ab"]
    plan = {
        **quoted, "op": "plan", "items": items,
        "source": {"sourceHead": "0" * 40, "dirtyDigest": "0" * 64},
    }  # fmt: skip
    _write(shell, "plan.json", plan)
    if verb == "task reconcile":
        begun = _run(shell, "operation", change)
        return command.replace("DIGEST", begun["recordDigest"])
    if verb == "task submit":
        lease = _run(shell, "children", plan)["leases"][0]
        shell.environment["AMUX_CHILD_LEASE"] = f"{lease['leaseId']}@{shell.cwd}/.devcodex"
        handed_in = {name: lease[name] for name in ("planDigest", "leaseDigest", "workItemId")}
        _write(shell, "evidence.json", {"evidence": handed_in})
    return filled


def _write(shell: Shell, name: str, value: object) -> None:
    (shell.cwd / name).write_text(json.dumps(value), encoding="utf-8")


def _run(shell: Shell, verb: str, arguments: object) -> dict[str, dict[str, object]]:
    _write(shell, "given.json", arguments)
    done = shell.run(f"amux task {verb} --args given.json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
