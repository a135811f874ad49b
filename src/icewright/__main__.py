"""``python -m icewright``: the command line, where its script is not on the path."""

from icewright.cli.main import main

main()
