"""Remove files: quarantine, grace, deletion. Nothing else deletes."""
