"""What a table consists of: pure functions over manifests and partitions."""
