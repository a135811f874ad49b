"""Decisions about time and order as pure functions: what to start next, when to try again, when to look again."""
