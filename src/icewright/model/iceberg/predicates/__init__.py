"""What filters of queries say, and the cuts of layouts that are taken from them."""
