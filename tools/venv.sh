#!/usr/bin/env bash
# Make a virtual environment with the first Python on the PATH that is new enough, or say in one sentence what is missing.
# Debian's python3 comes without ensurepip; there the machine's own pip puts a pip into the environment.
set -euo pipefail
target=$1

give_pip() {
    local python=$1
    "$target/bin/python" -m ensurepip --default-pip >/dev/null 2>&1 ||
        "$python" -m pip --disable-pip-version-check --quiet --python "$target/bin/python" install pip
}

for python in python3.11 python3 python3.13 python3.12 python; do
    command -v "$python" >/dev/null || continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    if "$python" -m venv --without-pip "$target" 2>/dev/null && give_pip "$python"; then
        exit
    fi
    rm -f "$target"/bin/python* # what is there would be taken for whole the next time
    echo "Maitred needs pip 22.3 or newer beside Python; on Debian: apt-get install python3-pip" >&2
    exit 1
done

echo "Maitred needs Python 3.11 or newer, and there is none on the PATH." >&2
exit 1
