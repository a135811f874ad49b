"""Which table needs which files: claims, overlaps, and locations of others."""
