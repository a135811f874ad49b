"""In-memory implementations of the ports: for tests, simulation and commands that need no store."""
