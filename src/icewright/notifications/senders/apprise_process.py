"""The process that hands one message to the library Apprise, watched by an audit hook from before that is imported.

It reads an order as JSON from its standard input and says by its exit status what became of it. Whatever connects to an
address inside that is not allowed, starts a program or opens a socket of this machine ends it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, Final

from icewright.core.networks import Network, inside, is_in, network, parse

SENT: Final = 0
NOT_SENT: Final = 10
NO_ADDRESS: Final = 11
INSIDE: Final = 12

_CONNECTS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS: Final = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"})


def watch(allowed: Sequence[Network]) -> None:
    """End this process when anything in it does what it may not. That cannot be taken back."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _STARTS or (event in _CONNECTS and not _may_connect(args[0], args[1], allowed)):
            os._exit(INSIDE)

    sys.addaudithook(hook)


def _may_connect(used: socket.socket, address: Any, allowed: Sequence[Network]) -> bool:
    if address is None:  # of a socket that is connected already
        return True
    if used.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        found = parse(str(address[0]))
    except ValueError:
        return False  # a name, which would be resolved behind our back
    return is_in(found, allowed) or inside(found) is None


def _send(order: dict[str, Any]) -> int:
    import apprise  # noqa: PLC0415 - behind the hook

    asset = apprise.AppriseAsset(
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        async_mode=False,
        http_redirects=False,
        secure_logging=True,
        allow_templates=False,
        pgp_autogen=False,
        pem_autogen=False,
        interpret_escapes=False,
        interpret_emojis=False,
    )
    service = apprise.Apprise(asset=asset)
    if not service.add(order["url"]):
        return NO_ADDRESS
    sent = service.notify(body=order["body"], title=order["title"], body_format=order["format"])
    return SENT if sent else NOT_SENT


def main() -> None:
    """Carry out the order. A defect of the library's ends as Python ends, with status 1."""
    order = json.load(sys.stdin)
    if order["proxy"]:
        os.environ["HTTP_PROXY"] = os.environ["HTTPS_PROXY"] = order["proxy"]
    watch([network(text) for text in order["allowed"]])
    os._exit(_send(order))


if __name__ == "__main__":
    main()
