#!/bin/sh
# What `make run` does: switch memory on in ./.run/amux, start the Hub there, show how to connect.
# It ends; the Hub goes on in the background until `make stop`.
set -eu

here=$(pwd)
amux="$here/.venv/bin/amux"
AMUX_HOME="$here/.run/amux"
export AMUX_HOME
mkdir -p -m 700 "$here/.run"

"$amux" system config set memory.enabled true >/dev/null 2>&1 || "$amux" system config set memory.enabled true
"$amux" hub restart >/dev/null 2>&1 || "$amux" hub restart

if "$amux" memory show MEMORY.md --json | grep -q '"exists": *false'; then
    printf '%s\n' \
        '# Memory' \
        '' \
        '- Details live in topic documents, for example `projects/<name>.md`.' |
        "$amux" memory upsert MEMORY.md --expected-revision absent >/dev/null
fi

cat <<END
amux is running.

  root     $AMUX_HOME
  memory   switched on (memory.enabled is true in this root only)
  hub      in the background; stop it with: make stop

Claude Code: put this into .mcp.json of a project
END
"$amux" mcp entry --client claude
printf '\nCodex: put this into ~/.codex/config.toml\n\n'
"$amux" mcp entry --client codex
printf '\nTry it from this folder:\n\n  AMUX_HOME="%s" "%s" memory show MEMORY.md\n\n' "$AMUX_HOME" "$amux"
"$amux" memory show MEMORY.md
