"""Log-in by an OpenID Connect provider."""
