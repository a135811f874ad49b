"""Planners: pure functions from an observation and a policy to a plan, and the checker that does not trust them."""
