"""``python -m icewright``: the command line, where its script is not on the path."""

from icewright.app.main import main

main()
