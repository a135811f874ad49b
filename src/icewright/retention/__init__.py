"""How long rows of the database are kept, and the history table."""
