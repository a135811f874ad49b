"""The server: loop, wiring, exposure."""
