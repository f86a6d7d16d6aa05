#!/bin/sh
# Install the official MCP clients of tests/peers. Node comes from the machine if it is new
# enough; the official Python client is in requirements-dev.lock already.
set -eu
node_major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${node_major:-0}" -lt 20 ]; then
    echo "the TypeScript peers need Node 20 or newer with npm" >&2
    exit 1
fi
cd tests/peers
npm ci --no-audit --no-fund --ignore-scripts
