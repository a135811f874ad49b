"""Jobs of others that report what they committed."""
