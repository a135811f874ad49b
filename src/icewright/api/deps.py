"""What every route asks for: the control plane behind the application, who opens the door, and who came in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, cast

from fastapi import Depends, Request

from icewright.api.access import Access
from icewright.api.lookups import Lookups
from icewright.domain.access import Principal
from icewright.domain.servers import SeenServer
from icewright.services.control import ControlPlane
from icewright.services.leading import Leading, nobody_leads

PRINCIPAL: Final = "icewright.principal"
"""Where the door leaves who asks, in the ASGI scope of what it lets in."""
STRANGER: Final = Principal("stranger", ())
"""Whoever asks what is public."""


def _control(request: Request) -> ControlPlane:
    return cast("ControlPlane", request.app.state.control)


def _lookups(request: Request) -> Lookups:
    return cast("Lookups", request.app.state.lookups)


def _access(request: Request) -> Access:
    return cast("Access", request.app.state.access)


def _caller(request: Request) -> Principal:
    return cast("Principal", request.scope[PRINCIPAL])


def _led(request: Request) -> ControlPlane:
    led = cast("Leading", request.app.state.leading).led
    if led is None:
        raise nobody_leads()
    return led


def _led_or_own(request: Request) -> ControlPlane:
    return cast("Leading", request.app.state.leading).led or _control(request)


def _servers(request: Request) -> Sequence[SeenServer]:
    return cast("Leading", request.app.state.leading).servers()


def _is_stuck(request: Request) -> bool:
    return cast("Leading", request.app.state.leading).is_stuck


Control = Annotated[ControlPlane, Depends(_control)]
Looked = Annotated[Lookups, Depends(_lookups)]
Gate = Annotated[Access, Depends(_access)]
Caller = Annotated[Principal, Depends(_caller)]
Led = Annotated[ControlPlane, Depends(_led)]
"""For routes that are :data:`~icewright.api.passing.BY_LEADER`."""
LedOrOwn = Annotated[ControlPlane, Depends(_led_or_own)]
"""Where what the loop knows is shown if it turns here, and left out if not."""
IsStuck = Annotated[bool, Depends(_is_stuck)]
"""Whether the loop of a former lead hangs in this server."""
Servers = Annotated[Sequence[SeenServer], Depends(_servers)]
