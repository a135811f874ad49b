"""Whether the server in this container is well: exit status 0 or 1. It asks without a token, on this machine alone.

The server's port and TLS are those of its environment. Its certificate is not verified: it is of another name than
127.0.0.1, and nothing secret is sent or believed.
"""

import http.client
import os
import ssl
import sys

TIMEOUT_S = 8


def main() -> int:
    """Ask once; what the server says is wrong goes to standard error."""
    port = int(os.environ.get("ICEWRIGHT_SERVER__PORT", "7077"))
    if "ICEWRIGHT_SERVER__TLS_CERTIFICATE" in os.environ:
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - see above
        asked: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=TIMEOUT_S, context=context
        )
    else:
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        asked.request("GET", "/api/v1/healthz")
        answer = asked.getresponse()
        said = answer.read(2_000).decode(errors="replace")
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        asked.close()
    if answer.status != http.HTTPStatus.OK:
        sys.stderr.write(f"{answer.status}: {said}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
