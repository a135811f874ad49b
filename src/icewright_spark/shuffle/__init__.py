"""The shuffle: rows read by Spark, spread over several files in the order of a layout, and proved to be the same."""
