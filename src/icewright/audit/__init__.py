"""Who did what: a log that nobody can change unnoticed."""
