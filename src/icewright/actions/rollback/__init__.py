"""Roll a table back to an older snapshot."""
