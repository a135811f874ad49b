"""Undo what an action did."""
