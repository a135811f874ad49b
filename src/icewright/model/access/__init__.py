"""Principals, permissions and roles."""
