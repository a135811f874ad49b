"""The event feed: what happened, for programs that follow it."""
