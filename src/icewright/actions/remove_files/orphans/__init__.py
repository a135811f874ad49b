"""Find files that no table needs."""
