"""The whole configuration: loaded, checked and shown."""
