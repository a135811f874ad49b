"""Delete rows past their retention."""
