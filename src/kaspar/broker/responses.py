"""How a response is encoded, and the place of one that has yet to come."""

import time
from collections.abc import Callable
from typing import TypeAlias

from kaspar.base.errors import Refused
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.handlers import PartlyEncoded, Response
from kaspar.broker.metrics import RequestMetrics
from kaspar.protocol import codec
from kaspar.protocol.error_counts import error_counter
from kaspar.protocol.headers import set_frame_size, start_response

Encode: TypeAlias = Callable[[int, int, Response], Buffers]
"""The response of a version to the request of a correlation id, as bytes."""


def encode_response(version: int, correlation_id: int, response: Response) -> Buffers:
    if isinstance(response, PartlyEncoded):
        message, encoded, _ = response
    else:
        message, encoded = response, None
    out = start_response(message.SCHEMA.api_key, version, correlation_id)
    codec.write_into(out, message, version, encoded)
    set_frame_size(out)
    return (out,)


def count_errors(metrics: RequestMetrics, version: int, response: Response) -> None:
    """Count the error codes of a response that goes out."""
    if isinstance(response, PartlyEncoded):
        response, _, encoded = response
        for code, times in encoded.items():
            metrics.errors[code] += times
    count = error_counter(type(response), version)
    if count is not None:
        count(response, metrics.errors)


class Delayed(Slot):
    """The place of a response that has yet to come, and what is measured of its request."""

    __slots__ = (
        "_correlation_id",
        "_encode",
        "_metrics",
        "_received",
        "_request_bytes",
        "_version",
        "_waits_since",
    )

    def __init__(
        self,
        connection: Connection,
        metrics: RequestMetrics,
        version: int,
        correlation_id: int,
        received: float,
        request_bytes: int,
        encode: Encode = encode_response,
    ) -> None:
        super().__init__(connection)
        self._metrics = metrics
        self._version = version
        self._correlation_id = correlation_id
        self._received = received
        self._request_bytes = request_bytes
        self._encode = encode
        self._waits_since = time.perf_counter()

    def answered(self, answer: Response) -> None:
        try:
            response = self._encode(self._version, self._correlation_id, answer)
        except Exception as problem:
            self.fail(problem)
        else:
            count_errors(self._metrics, self._version, answer)
            self.fill(response)

    def refused(self, refusal: Refused) -> None:
        self._connection.refuse(f"{self._metrics.name} could not be carried out: {refusal.message}")

    def handed_over(self) -> None:
        self._let_go()
        waits_since = self._waits_since
        self._metrics.delayed(
            self._version, waits_since - self._received, time.perf_counter() - waits_since, self._request_bytes
        )
