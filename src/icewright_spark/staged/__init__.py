"""The staged rewrite: Spark's own reader and writer over staged scan tasks, for what the merge kernel cannot do."""
