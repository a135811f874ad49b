"""Autotuning: how many optimizers there are, and how much memory each has."""
