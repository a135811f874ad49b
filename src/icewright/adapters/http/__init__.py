"""The server's HTTP API from the outside."""
