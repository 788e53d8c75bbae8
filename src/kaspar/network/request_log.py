"""The request log: a line for each request when it has its response, like Kafka's `kafka.request.logger` at DEBUG.

It is put in front of the pipeline only while that level is on (`kafka-configs --entity-type broker-loggers`), so that
it costs nothing otherwise. Requests for authentication do not pass it.
"""

import logging
from time import perf_counter
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.network.connection import Buffers, Connection, RequestHandler, Slot
from kaspar.network.exchange import Exchange
from kaspar.protocol.api import api_name
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import RequestHeader, read_request_header

REQUEST_LOGGER: Final = "kaspar.request.logger"
log = get_log(REQUEST_LOGGER)
log.logger.setLevel(logging.WARNING)  # its own level, as in Kafka: a broker at DEBUG does not log its requests


def logs_requests() -> bool:
    return log.logger.isEnabledFor(logging.DEBUG)


class LoggedRequests:
    def __init__(self, requests: RequestHandler) -> None:
        self._requests = requests

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        try:
            header = read_request_header(memoryview(buffer)[start:end])
        except MalformedBytes:  # the pipeline refuses it
            return self._requests.handle(connection, buffer, start, end, received)
        outcome = self._requests.handle(connection, buffer, start, end, received)
        if isinstance(outcome, Exchange):
            outcome.when_finished = _log_exchange
        elif not isinstance(outcome, Slot):
            _log(connection, header, end - start, total_s=perf_counter() - received, response=outcome)
        return outcome


def _log_exchange(exchange: Exchange, local_s: float, remote_s: float) -> None:
    _log(
        exchange.connection,
        exchange.header,
        exchange.request_bytes,
        total_s=local_s + remote_s,
        remote_s=remote_s,
        throttle_ms=exchange.throttle_time_ms,
    )


def _log(
    connection: Connection,
    header: RequestHeader,
    request_bytes: int,
    *,
    total_s: float,
    remote_s: float = 0.0,
    throttle_ms: int = 0,
    response: Buffers | None = None,
) -> None:
    values: dict[str, object] = {
        "request": api_name(ApiKey(header.api_key)),
        "version": header.api_version,
        "correlation_id": header.correlation_id,
        "client": header.client_id,
        "principal": "" if connection.principal is None else str(connection.principal),
        "peer": connection.peer,
        "listener": connection.owner.name,
        "request_bytes": request_bytes,
        "total_ms": _ms(total_s),
        "local_ms": _ms(total_s - remote_s),
        "remote_ms": _ms(remote_s),
        "throttle_ms": throttle_ms,
    }
    if response is not None:
        values["response_bytes"] = sum(len(each) for each in response)
    log.debug("completed request", **values)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f}"
