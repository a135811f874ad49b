"""What owners want of their tables."""
