"""Optimizers: what they can reach, what they had to leave out."""
