"""The composition root: configuration in, wired program out."""
