"""A stream of events as an HTTP response."""

from __future__ import annotations

from typing import Any

from fastapi.responses import StreamingResponse

from hybrid.service.events import EventBus
from hybrid.service.http.access import Receive, Scope, Send


class EventStream(StreamingResponse):
    """Counts from when it is made, so that no two requests take the last place, until the response ends."""

    def __init__(self, bus: EventBus, job: str | None, first: list[tuple[str, dict[str, Any]]]) -> None:
        self._bus, self._listener = bus, bus.listen(job)
        super().__init__(bus.stream(self._listener, first), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._bus.leave(self._listener)
