"""Fuzz a real server by its own description for a while: `make fuzz`, or with ARGS="--seconds 60".

The server is `maitred up` on an empty directory. schemathesis makes calls of `/openapi.json`, right and wrong
ones, and sequences of them, until the time is over. It finds fault with a 5xx, and with any answer that the
description does not name or describes otherwise. What it has found it prints with a call to try it again.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

_HERE = Path(__file__).resolve().parent
_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ignored_auth",
)
# A key that the fuzz revokes or replaces could be its own; a stream of everything has no end.
_LEFT_OUT = r"^/api/v1/(keys/\{id\}|events)"


def main() -> int:
    """Fuzz; give 1 if something was found."""
    parser = argparse.ArgumentParser(description="Fuzz a real server by its own description.")
    parser.add_argument("--seconds", type=int, default=300, help="how long (300)")
    parser.add_argument("--seed", type=int, default=1, help="other calls (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "maitred", "up", "--data", folder, "--port", "0", "--slots", "0"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                return _fuzz(_address(server), options.seconds, options.seed, Path(folder))
            finally:
                server.terminate()


def _fuzz(address: str, seconds: int, seed: int, folder: Path) -> int:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
        *("--header", f"Authorization: Bearer {_key(address)}"),
        *("--checks", ",".join(_CHECKS)),
        *("--exclude-path-regex", _LEFT_OUT),
        *("--max-time", str(seconds), "--seed", str(seed)),
        *("--request-timeout", "5", "--max-response-time", "5", "--suppress-health-check", "all"),
        *("--warnings", "off"),
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": os.pathsep.join([str(_HERE), *sys.path])}
    return subprocess.run(command, cwd=folder, env={**os.environ, **hooks}, check=False).returncode


def _address(server: "subprocess.Popen[str]") -> str:
    """Give where the server is, once it says that it is ready."""
    for line in server.stdout or ():
        if found := re.search(r"ready at (http\S+)", line):
            return found[1]
    raise SystemExit("the server did not start")


def _key(address: str) -> str:
    """Make an admin's key, so that whatever else is made the fuzz may go on."""
    answer = httpx.post(f"{address}/api/v1/keys", json={"role": "admin", "name": "fuzz"})
    return str(answer.raise_for_status().json()["key"])


if __name__ == "__main__":
    sys.exit(main())
