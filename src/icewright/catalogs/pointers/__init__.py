"""Tables in each kind of catalog: load, list, commit."""
