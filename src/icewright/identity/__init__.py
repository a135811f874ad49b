"""Who calls: tokens, sessions, log-in, and what each caller may do."""
