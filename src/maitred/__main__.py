"""`python -m maitred` is the command line, too."""

from maitred.cli import main

main()
