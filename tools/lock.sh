#!/usr/bin/env bash
# Write the lock files anew from pyproject.toml: what is needed to install the project, to run it, and to work on it.
#
# A later file is resolved under the earlier ones, so that all three can share one environment. Hashes are those of
# every file of a version, so a lock made on one machine serves all; no index address is written, so the files say
# nothing of where they were made. ARGS=--upgrade takes newer versions.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    local out=$1
    shift
    .venv/bin/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header --no-emit-index-url \
        --no-emit-find-links --no-emit-options --annotation-style=line --output-file="$out" ${ARGS:-} "$@" pyproject.toml
}

compile requirements-build.lock --only-build-deps --build-deps-for editable
compile requirements.lock --constraint requirements-build.lock
compile requirements-dev.lock --extra dev --extra otel --constraint requirements-build.lock --constraint requirements.lock
