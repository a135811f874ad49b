"""Tasks, attempts, optimizers, and what limits them."""
