#!/usr/bin/env bash
# Make a virtual environment with the first Python on the PATH that is new enough, or say in one sentence what is missing.
set -euo pipefail
target=$1

for python in python3.11 python3 python3.13 python3.12 python; do
    command -v "$python" >/dev/null || continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        echo "Maitred needs Python's venv module; on Debian: apt-get install python3-venv" >&2
        exit 1
    fi
    exec "$python" -m venv "$target"
done

echo "Maitred needs Python 3.11 or newer, and there is none on the PATH." >&2
exit 1
