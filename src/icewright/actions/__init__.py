"""What icewright does to tables: one folder for each action."""
