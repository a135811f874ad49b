"""A provider of OpenID Connect, by authlib and joserfc: an extra, ``icewright[oidc]``."""
