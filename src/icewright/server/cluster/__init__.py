"""Several servers: leader election, peers."""
