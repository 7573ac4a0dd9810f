"""Run luacheck on the Lua library as the store loads it.

The scripts are files with shared includes, and a mistake between two files (a name that no include defines,
a local that hides another) shows only when they are one; so the assembled library is what is checked. Line
numbers in the warnings are those of the assembled text, which is kept when there are warnings.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from maitred.store.valkey import scripts

GLOBALS = ("redis", "cjson", "cmsgpack", "struct", "bit")


def main() -> int:
    """Check the library; the answer is the exit status, 0 if luacheck has nothing to say."""
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        print(
            "luacheck is missing; `make parts` installs it (Debian: apt-get install lua-check).",
            file=sys.stderr,
        )
        return 1
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="maitred-", suffix=".lua", delete=False
    ) as file:
        file.write(scripts.library())
    assembled = Path(file.name)
    options = ("--std", "lua51", "--no-max-line-length", "--no-color", "--quiet", "--globals", *GLOBALS)
    status = subprocess.run([luacheck, file.name, *options], check=False).returncode
    if status == 0:
        assembled.unlink()
    else:
        print(f"The assembled library is in {assembled}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
