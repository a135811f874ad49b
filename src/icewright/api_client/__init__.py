"""The client of the HTTP API, for the command line and the Python client."""
