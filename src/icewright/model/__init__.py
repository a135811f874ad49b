"""The words that all capabilities share, as values: no input or output, no clock."""
