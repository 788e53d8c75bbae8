"""Requests that come at once get the responses, and leave the records, of some order in which they could have come one
after the other."""

import asyncio
import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any, Final

from hypothesis import given, settings, strategies

from kaspar.registry.interfaces import LogRecord
from tests.unit.registry.memory import MemoryRegistry

Request = tuple[str, str, dict[str, Any] | None]
Response = tuple[int, str]

_SUBJECTS: Final = ("a", "b", ":.x:a")
_SCHEMAS: Final = ("int", "long", "string")

_subjects = strategies.sampled_from(_SUBJECTS)
_schemas = strategies.sampled_from(_SCHEMAS).map(lambda name: {"schema": json.dumps(name)})
_referring = strategies.sampled_from(("a", "b")).map(
    lambda subject: {
        "schema": '{"type":"record","name":"R","fields":[{"name":"f","type":"int"}]}',
        "references": [{"name": "r", "subject": subject, "version": 1}],
    }
)
_flags = strategies.sampled_from(("false", "true"))
_requests = strategies.one_of(
    strategies.tuples(
        strategies.just("POST"), _subjects.map("/subjects/{}/versions".format), strategies.one_of(_schemas, _referring)
    ),
    strategies.tuples(
        strategies.just("DELETE"),
        strategies.builds("/subjects/{}/versions/1?permanent={}".format, _subjects, _flags),
        strategies.none(),
    ),
    strategies.tuples(
        strategies.just("DELETE"),
        strategies.builds("/subjects/{}?permanent={}".format, _subjects, _flags),
        strategies.none(),
    ),
    strategies.tuples(
        strategies.just("PUT"),
        _subjects.map("/config/{}".format),
        strategies.sampled_from(("NONE", "FULL")).map(lambda level: {"compatibility": level}),
    ),
    strategies.tuples(
        strategies.just("PUT"),
        _subjects.map("/mode/{}".format),
        strategies.sampled_from(("READWRITE", "READONLY")).map(lambda mode: {"mode": mode}),
    ),
)
_bursts = strategies.lists(strategies.lists(_requests, min_size=1, max_size=4), min_size=1, max_size=4)


async def _send(registry: MemoryRegistry, request: Request) -> Response:
    method, target, body = request
    response = await registry.http.request(method, target, content=None if body is None else json.dumps(body).encode())
    return response.status_code, response.text


async def _at_once(registry: MemoryRegistry, burst: Sequence[Request]) -> list[Response]:
    return await asyncio.gather(*(_send(registry, request) for request in burst))


def _one_by_one(
    before: Sequence[LogRecord], burst: Sequence[Request], order: Sequence[int]
) -> tuple[list[Response], list[LogRecord]]:
    """The responses by the place of each request in the burst, and the log."""
    with MemoryRegistry() as registry:
        registry.runner.run(registry.log.append(before))
        responses = {place: registry.runner.run(_send(registry, burst[place])) for place in order}
        return [responses[place] for place in range(len(burst))], registry.log.records


@given(_bursts)
@settings(max_examples=150, deadline=None)
def test_requests_at_once_are_as_in_some_order(bursts: list[list[Request]]) -> None:
    with MemoryRegistry() as registry:
        for burst in bursts:
            before = list(registry.log.records)
            found = registry.runner.run(_at_once(registry, burst)), registry.log.records
            orders = permutations(range(len(burst)))
            assert any(_one_by_one(before, burst, order) == found for order in orders), (burst, found)
