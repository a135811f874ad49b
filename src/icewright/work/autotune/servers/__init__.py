"""How many servers there should be, and who is asked for them."""
