"""Whose certificates a client believes: those of the machine, or of the variables that OpenSSL has for others."""

from __future__ import annotations

import ssl


def trusted(url: str) -> ssl.SSLContext | bool:
    """What a server's certificate is verified by: ``SSL_CERT_FILE``, ``SSL_CERT_DIR`` or the machine's certificates.

    httpx2 leaves these variables out along with those for proxies, which must not see the token.
    """
    return ssl.create_default_context() if url.startswith("https://") else True
