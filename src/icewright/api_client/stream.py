"""The client's side of server-sent events: lines in, facts out, taken up again where a stream ended."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any, Final

import httpx2

from icewright.api_client.problems import problem
from icewright.core.errors import Rejected, Unavailable

RETRY_S: Final = 3.0
SILENCE_S: Final = 45.0
"""Three beats of the server: a stream that says nothing for longer has ended without our hearing of it."""
TRIES_MAX: Final = 20
"""So many streams in a row that could not be opened, a minute or so, are an error."""
_OK: Final = 200


def followed(
    http: httpx2.Client, url: str, after: int | None, *, retry_s: float = RETRY_S
) -> Generator[dict[str, Any], None, None]:
    """The data of events as they come. Raises :class:`Unavailable`, and what the server says is wrong."""
    position, failures = after, 0
    while True:
        headers = {} if position is None else {"Last-Event-ID": str(position)}
        timeout = httpx2.Timeout(10.0, read=SILENCE_S)
        try:
            with http.stream("GET", url, headers=headers, timeout=timeout) as response:
                if response.status_code != _OK:
                    response.read()
                    raise problem(response.status_code, _json(response))
                failures = 0
                data = ""
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        position = int(value)
                    elif name == "data":
                        data = value
                    elif not line and data:
                        yield json.loads(data)
                        data = ""
        except httpx2.InvalidURL as error:
            raise Rejected(f"not the address of a server: {url}") from error
        except (httpx2.HTTPError, Unavailable) as error:
            failures += 1
            if failures > TRIES_MAX or (position is None and failures == 1):
                said = str(error) or type(error).__name__
                raise Unavailable(
                    f"the stream of {url} does not open: {said}", hint="is the server running?"
                ) from error
        time.sleep(retry_s)


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
