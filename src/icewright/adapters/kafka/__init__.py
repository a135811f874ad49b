"""Commit events from a Kafka topic."""
