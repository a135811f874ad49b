"""Implementations of the ports; errors of libraries are translated here, at the door."""
