"""The HTTP API: parse, call a service, render."""
