"""The commits of each action, through one place that commits."""
