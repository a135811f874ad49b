"""The demonstration: the whole loop on a local lakehouse."""
