"""Commit notifications and other events that come in."""
