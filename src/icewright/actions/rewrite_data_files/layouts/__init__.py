"""Sort orders and levels of files."""
