"""One module per action: a task's spec in, its report out."""
