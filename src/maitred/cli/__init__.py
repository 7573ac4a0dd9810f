"""What people type: `maitred up`, `maitred submit`, `maitred line` and the rest."""

from maitred.cli.app import main

__all__ = ["main"]
