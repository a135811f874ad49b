"""How much storage a table takes, and what of it nothing needs."""
