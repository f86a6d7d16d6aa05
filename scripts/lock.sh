#!/bin/sh
# Write the lock files: every release by its hashes, for every platform, no index named.
set -eu

compile() {
    .venv/bin/uv pip compile -q --python-version 3.11 --universal --generate-hashes \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}

compile --group build pyproject.toml -o requirements.lock "$@"
compile --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock "$@"
compile tests/peers/requirements.in -o tests/peers/requirements.lock "$@"
compile --only-binary :all: tests/agents/requirements.in -o tests/agents/requirements.lock "$@"
# Newer releases of ripgrep have no wheel; an old one is peer enough.
compile --only-binary :all: bench/requirements.in -o bench/requirements.lock "$@"
