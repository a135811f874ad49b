"""What routes ask for: services by their type, of this server or of the one that leads, and who came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias, TypeVar, cast

from fastapi import Depends, Request

from icewright.core.servers import nobody_leads
from icewright.model.access.permissions import Principal

T = TypeVar("T")

PRINCIPAL: Final = "icewright.principal"
"""Where the door leaves who asks, in the ASGI scope of what it lets in."""
STRANGER: Final = Principal("stranger", ())
"""Whoever asks what is public."""


class Services(Protocol):
    """All services of a server."""

    def service(self, kind: type[Any]) -> Any:
        """The one of that type."""


def _own(request: Request) -> Services:
    return cast("Services", request.app.state.control)


def _led(request: Request) -> Services:
    led = request.app.state.leading.led
    if led is None:
        raise nobody_leads()
    return cast("Services", led)


def _led_or_own(request: Request) -> Services:
    return cast("Services", request.app.state.leading.led or request.app.state.control)


def _depends(services: Callable[[Request], Services], kind: type[Any]) -> Any:
    def found(request: Request) -> Any:
        return services(request).service(kind)

    return Annotated[kind, Depends(found)]


if TYPE_CHECKING:
    Service: TypeAlias = Annotated[T, ...]
    Led: TypeAlias = Annotated[T, ...]
    LedOrOwn: TypeAlias = Annotated[T, ...]
else:

    class Service:
        """A service of this server: ``tasks: Service[TaskStore]``."""

        def __class_getitem__(cls, kind: type[Any]) -> Any:
            return _depends(_own, kind)

    class Led:
        """A service beside the loop, for routes that are :data:`BY_LEADER`."""

        def __class_getitem__(cls, kind: type[Any]) -> Any:
            return _depends(_led, kind)

    class LedOrOwn:
        """A service beside the loop if that turns here, else this server's: what the loop knows is left out then."""

        def __class_getitem__(cls, kind: type[Any]) -> Any:
            return _depends(_led_or_own, kind)


def _caller(request: Request) -> Principal:
    return cast("Principal", request.scope[PRINCIPAL])


Caller = Annotated[Principal, Depends(_caller)]


@dataclass(frozen=True)
class OfLeader:
    """The declaration of a route that is the leader's; ``or_here``: what this server knows is better than nothing."""

    or_here: bool
    timeout_s: float

    def __call__(self) -> None:
        """Let everybody pass: what it needs is declared beside."""


BY_LEADER: Final[Any] = Depends(OfLeader(or_here=False, timeout_s=30.0))
BY_LEADER_FOR_LONG: Final[Any] = Depends(OfLeader(or_here=False, timeout_s=3_600.0))
"""What lists all files of a table, or reads all its metadata, takes as long as it takes."""
BY_LEADER_IF_ANY: Final[Any] = Depends(OfLeader(or_here=True, timeout_s=10.0))
