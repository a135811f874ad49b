"""Administration of the database: backup, restore, integrity check, census."""
