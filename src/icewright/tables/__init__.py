"""Tables for people: lists, details, findings."""
