"""The toolkit of the HTTP API: dependencies, problems, idempotency, schemas."""
