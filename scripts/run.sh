#!/bin/sh
# What `make run` does: switch memory on in ./.run/amux, start the Hub there, show how to connect.
# It ends; the Hub goes on in the background until `make stop`.
set -eu

here=$(pwd)
amux="$here/.venv/bin/amux"
AMUX_HOME="$here/.run/amux"
export AMUX_HOME
(umask 077 && mkdir -p "$AMUX_HOME")

# Quotes a word for pasting into a shell.
quoted() {
    printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}

# What is said on success is said better below; what is refused is shown.
quietly() {
    if ! said=$("$@" 2>&1); then
        printf '%s\n' "$said" >&2
        exit 1
    fi
}

quietly "$amux" system config set memory.enabled true
quietly "$amux" hub restart

case $("$amux" memory show MEMORY.md --json) in
*'"exists":false'*)
    printf '%s\n' '# Memory' '' '- Details live in topic documents, such as `projects/name.md`.' |
        quietly "$amux" memory upsert MEMORY.md --expected-revision absent
    ;;
esac

cat <<END
amux is running.

  root     $AMUX_HOME
  memory   switched on (memory.enabled, in this root only)
  hub      in the background; stop it with: make stop

Claude Code: put this into .mcp.json of a project

END
"$amux" mcp entry --client claude
printf '\nCodex: put this into ~/.codex/config.toml\n\n'
"$amux" mcp entry --client codex
printf '\nTry it; this one shows the entry, which agents read first:\n\n'
printf '  AMUX_HOME=%s %s memory show MEMORY.md\n\n' "$(quoted "$AMUX_HOME")" "$(quoted "$amux")"
"$amux" memory export MEMORY.md
printf '\nOr start an agent that has it, its own memory off (codex and pi too):\n\n'
printf '  AMUX_HOME=%s %s run claude\n' "$(quoted "$AMUX_HOME")" "$(quoted "$amux")"
printf '\nAnd in a project, to keep what its sessions did, for whichever agent comes next (its files name\n'
printf 'amux without a path: put .venv/bin/amux on your PATH first):\n\n'
printf '  %s workspace init --claude --codex\n' "$(quoted "$amux")"
