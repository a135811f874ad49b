"""What every route asks for: the control plane behind the application, and who opens the door."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from icewright.api.access import Access
from icewright.api.lookups import Lookups
from icewright.services.control import ControlPlane


def _control(request: Request) -> ControlPlane:
    return cast("ControlPlane", request.app.state.control)


def _lookups(request: Request) -> Lookups:
    return cast("Lookups", request.app.state.lookups)


def _access(request: Request) -> Access:
    return cast("Access", request.app.state.access)


Control = Annotated[ControlPlane, Depends(_control)]
Looked = Annotated[Lookups, Depends(_lookups)]
Gate = Annotated[Access, Depends(_access)]
