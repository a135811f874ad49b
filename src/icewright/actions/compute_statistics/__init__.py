"""Compute statistics of columns as Puffin files."""
