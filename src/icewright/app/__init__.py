"""The command `icewright` and its processes."""
