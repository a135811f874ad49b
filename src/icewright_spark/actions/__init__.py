"""One module for each action: the spec of a task in, its report out."""
