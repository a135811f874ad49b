"""One module per step of the schema, named by number."""
