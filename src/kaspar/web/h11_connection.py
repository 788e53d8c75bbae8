"""Connections whose HTTP is parsed by h11, which is always installed."""

import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kaspar.web.connection import HEAD_TOO_LARGE, Connection


class H11Connection(Connection, H11Protocol):
    """h11 itself limits the size of a head, and of the bytes between the chunks of a body
    (`h11_max_incomplete_event_size`).
    """

    def send_400_response(self, msg: str) -> None:
        problem = sys.exception()
        if isinstance(problem, h11.RemoteProtocolError) and problem.error_status_hint == HEAD_TOO_LARGE[0]:
            self.refusal = HEAD_TOO_LARGE
        super().send_400_response(msg)
