"""POST .../records:batch: a few records with ids. The response has the outcome of each."""

import re
from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from kaspar.rest.errors import UNPROCESSABLE, RestError
from kaspar.rest.http import json_response
from kaspar.rest.v3.endpoint import Call, Endpoint, decoded
from kaspar.rest.v3.errors import INVALID_BATCH
from kaspar.rest.v3.producing.bodies import (
    BATCH,
    BatchEntry,
    BatchFailure,
    BatchRequest,
    BatchResponse,
    BatchSuccess,
    timestamp_text,
)
from kaspar.rest.v3.producing.encoding import RecordEncoder
from kaspar.rest.v3.producing.outcomes import Prepared, Result, submit
from kaspar.rest.v3.producing.stream import TAG, check_target
from kaspar.rest.v3.topics import TOPIC

_ID: Final = re.compile(r"[0-9a-zA-Z_-]{1,80}")


async def _produce(call: Call) -> Response:
    async with call.context.bodies.of(call.request) as body:
        entries = decoded(BATCH, body).entries or []
        ids = _ids(entries, call.context.config.settings.api_v3_produce_batch_max_entries)
        await check_target(call)
        group = await submit(call.context, call.identity, call.topic, await _prepared(call, entries))
        return json_response(_response(call, ids, await group.results()), status=207)


async def _prepared(call: Call, entries: Sequence[BatchEntry]) -> list[Prepared]:
    registration = call.context.registration(call.identity, call.topic)
    encoder = RecordEncoder(call.context.schemas, call.topic, registration)
    turn = call.context.turns.begin()
    prepared: list[Prepared] = []
    for entry in entries:
        if turn.is_over:
            await turn.next()
        try:
            prepared.append(await encoder.encode(entry))
        except RestError as problem:
            prepared.append(problem)
    return prepared


def _ids(entries: Sequence[BatchEntry], limit: int) -> list[str]:
    """Raises RestError."""
    for entry in entries:
        if not (isinstance(entry.id, str) and _ID.fullmatch(entry.id)):
            raise RestError(UNPROCESSABLE, "Batch entry identifier not a valid string.")
    ids = [str(entry.id) for entry in entries]
    if len(set(ids)) < len(ids):
        raise RestError(INVALID_BATCH, "Batch entry IDs are not distinct.")
    if not ids:
        raise RestError(INVALID_BATCH, "Empty batch.")
    if len(ids) > limit:
        raise RestError(INVALID_BATCH, "Too many entries in batch.")
    return ids


def _response(call: Call, ids: Sequence[str], results: Sequence[Result]) -> BatchResponse:
    response = BatchResponse([], [])
    for entry_id, result in zip(ids, results, strict=True):
        if isinstance(result, RestError):
            response.failures.append(BatchFailure(entry_id, result.kind.code, result.message))
            continue
        encoded, delivered = result
        response.successes.append(
            BatchSuccess(
                entry_id,
                call.cluster_id,
                call.topic,
                delivered.partition,
                delivered.offset,
                timestamp_text(delivered.timestamp_ms),
                encoded.key,
                encoded.value,
            )
        )
    return response


ENDPOINTS: Final = (
    Endpoint(
        "POST", f"{TOPIC}/records:batch", _produce, "Write a batch of records", TAG, BatchResponse, 207, BatchRequest
    ),
)
