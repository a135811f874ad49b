"""What a commit did, read from the manifests."""
