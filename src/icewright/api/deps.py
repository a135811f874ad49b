"""What every route asks for: the control plane behind the application, who opens the door, and who came in."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import Depends, Request

from icewright.api.access import Access
from icewright.api.lookups import Lookups
from icewright.domain.access import Principal
from icewright.services.control import ControlPlane

PRINCIPAL: Final = "icewright.principal"
"""Where the door leaves who asks, in the ASGI scope of what it lets in."""


def _control(request: Request) -> ControlPlane:
    return cast("ControlPlane", request.app.state.control)


def _lookups(request: Request) -> Lookups:
    return cast("Lookups", request.app.state.lookups)


def _access(request: Request) -> Access:
    return cast("Access", request.app.state.access)


def _caller(request: Request) -> Principal:
    return cast("Principal", request.scope[PRINCIPAL])


Control = Annotated[ControlPlane, Depends(_control)]
Looked = Annotated[Lookups, Depends(_lookups)]
Gate = Annotated[Access, Depends(_access)]
Caller = Annotated[Principal, Depends(_caller)]
