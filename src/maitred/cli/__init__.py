"""What people type: `maitred up`, `maitred submit`, `maitred line` and the rest."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that was typed; Ctrl-C is no error at any moment, also while this is imported."""
    try:
        from maitred.cli.app import run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(130)
