#!/bin/sh
# Make .venv with a Python that is new enough, or say in one sentence what is missing.
set -eu

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

for candidate in ${PYTHON:-} python3.11 python3 python3.12 python3.13 python3.14; do
    if usable "$candidate"; then
        exec "$candidate" -m venv .venv
    fi
done
echo "amux needs Python 3.11 or newer with its venv module (Debian: python3.11-venv)." >&2
exit 1
