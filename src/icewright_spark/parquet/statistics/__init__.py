"""What a file states of its rows, compared with the rows."""
