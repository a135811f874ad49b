"""The ways by which messages go out."""
