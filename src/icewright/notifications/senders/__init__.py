"""Delivery by webhook and Apprise."""
