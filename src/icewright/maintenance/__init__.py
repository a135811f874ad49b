"""What knows every action: plan a table, dispatch its tasks, verify them."""
