"""When a partition is worth rewriting."""
