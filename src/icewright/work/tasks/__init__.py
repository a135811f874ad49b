"""Tasks and attempts: outcomes, retries, estimated starts."""
