"""The HTTP application, metrics and the page."""
