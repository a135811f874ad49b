"""`icewright why`: the state of a table in words."""
