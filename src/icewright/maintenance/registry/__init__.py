"""The registry of actions, one list for each floor."""
