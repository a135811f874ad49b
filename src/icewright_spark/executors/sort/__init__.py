"""Sort or cluster rows across files by a Spark shuffle."""
