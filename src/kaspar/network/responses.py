"""Encodes the responses of messages, and counts their error codes. Produce and Fetch have their own codecs."""

from dataclasses import replace
from typing import Any, Final, cast

from kaspar.network.api import PartlyEncoded, Response
from kaspar.network.outgoing import Buffers
from kaspar.network.request_metrics import RequestMetrics
from kaspar.protocol import codec
from kaspar.protocol.error_counts import error_counter
from kaspar.protocol.headers import set_frame_size, start_response
from kaspar.protocol.schema import Message

_THROTTLE_TIME: Final = "throttle_time_ms"


def encode_response(version: int, correlation_id: int, response: Response, throttle_time_ms: int = 0) -> Buffers:
    if isinstance(response, PartlyEncoded):
        message, encoded, _ = response
    else:
        message, encoded = response, None
    if throttle_time_ms:
        message = _throttled(message, throttle_time_ms)
    out = start_response(message.SCHEMA.api_key, version, correlation_id)
    codec.write_into(out, message, version, encoded)
    set_frame_size(out)
    return (out,)


def _throttled(response: Message, throttle_time_ms: int) -> Message:
    """The response with its throttle time, if it has such a field."""
    if all(field.name != _THROTTLE_TIME for field in response.SCHEMA.fields):
        return response
    throttled: Message = replace(cast(Any, response), **{_THROTTLE_TIME: throttle_time_ms})
    return throttled


def throttle_time_of(response: Response) -> int:
    """The throttle time that the handler has set, because of a quota that only the handler knows of."""
    throttle_time_ms: int = getattr(response, _THROTTLE_TIME, 0)
    return throttle_time_ms


def count_errors(metrics: RequestMetrics, version: int, response: Response) -> None:
    """Count the error codes of a response."""
    if isinstance(response, PartlyEncoded):
        response, _, encoded = response
        for code, times in encoded.items():
            metrics.errors[code] += times
    count = error_counter(type(response), version)
    if count is not None:
        count(response, metrics.errors)
