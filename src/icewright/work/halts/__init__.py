"""Pause, drain and stop."""
