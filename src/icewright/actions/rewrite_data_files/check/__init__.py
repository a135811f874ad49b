"""Independent checks of plans to rewrite data files."""
