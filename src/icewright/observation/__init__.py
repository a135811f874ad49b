"""Observe tables: metadata, inventory, and when to look again."""
