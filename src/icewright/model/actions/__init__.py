"""What can be done to a table: one module for each action, and the union of them."""
