"""Resource groups: queues, caps, admission, ranks."""
