"""The few narrow doors to the outside world. Each has an in-memory implementation and one contract suite."""
