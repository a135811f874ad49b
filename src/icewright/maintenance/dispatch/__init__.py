"""From a plan to a verified task."""
