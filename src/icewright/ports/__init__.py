"""What several capabilities need of the outside: the database as protocols, and telemetry."""
