"""Splits the records of a request into groups, so that the event loop can serve other requests between them.

The body of a usual request is decoded in one pass. A body with very many records is split before it is decoded, because
a decoder does not yield to the event loop.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from kaspar.rest.errors import BAD_REQUEST, UNPROCESSABLE, RestError
from kaspar.rest.http import decode_body
from kaspar.rest.json_values import ANY_DEPTH, JsonValues, MalformedStream
from kaspar.rest.producing import OutgoingRecord
from kaspar.rest.v2 import bodies
from kaspar.web.turns import Turn

GROUP_RECORDS: Final = 500
GROUP_BYTES: Final = 64 * 1024
AT_ONCE_BRACES: Final = 20_000
"""A few milliseconds of decoding, if each brace is a record."""
AT_ONCE_BYTES: Final = 2 << 20

_Record = TypeVar("_Record")
RawGroups = list[Sequence[bodies.RawRecord]]

_raw_records: Final = bodies.decoder(list[bodies.RawRecord])


async def binary_groups(body: bytes, partition: int, turn: Turn) -> list[list[OutgoingRecord]] | None:
    """Fast path for base64 records; None if anything in the body is invalid or the body is too large for one pass."""
    if not _is_usual(body):
        return None
    try:
        records = bodies.BINARY_PRODUCE.decode(body).records
        str(body, "utf-8")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not records:
        return None
    ready = []
    for group in _grouped(records):
        if turn.is_over:
            await turn.next()
        outgoing = []
        for record in group:
            where = record.partition
            if where is None:
                where = partition
            elif where < 0:
                return None
            outgoing.append(OutgoingRecord(record.key, record.value, where))
        ready.append(outgoing)
    return ready


async def raw_groups(body: bytes, turn: Turn) -> tuple[bodies.RawProduce | bodies.SplitProduce, RawGroups]:
    """The request, and its records in groups. Raises RestError."""
    if _is_usual(body):
        request = decode_body(bodies.RAW_PRODUCE, body)
        return request, await _checked(_grouped(request.records or ()), turn)
    split = decode_body(bodies.SPLIT_PRODUCE, body)
    records = bytes(split.records)
    if not records.startswith(b"["):
        request = decode_body(bodies.RAW_PRODUCE, body)  # no array of records: missing, or rejected by the decoder
        return request, await _checked(_grouped(request.records or ()), turn)
    return split, await _checked(await _split(records, turn), turn)


def _is_usual(body: bytes) -> bool:
    return len(body) <= AT_ONCE_BYTES and body.count(b"{") <= AT_ONCE_BRACES


def _grouped(records: Sequence[_Record]) -> list[Sequence[_Record]]:
    if len(records) <= GROUP_RECORDS:
        return [records] if records else []
    return [records[start : start + GROUP_RECORDS] for start in range(0, len(records), GROUP_RECORDS)]


async def _split(array: bytes, turn: Turn) -> RawGroups:
    values, groups = JsonValues(len(array), ANY_DEPTH, separators=b" \t\r\n,"), []
    values.feed(array[1:-1])
    group: list[bytes] = []
    size = 0
    try:
        while (value := values.next()) is not None or values.has_more:
            if value is not None:
                group.append(value)
                size += len(value)
            if len(group) >= GROUP_RECORDS or size >= GROUP_BYTES:
                groups.append(_decoded(group))
                group, size = [], 0
            if turn.is_over:
                await turn.next()
    except MalformedStream as problem:
        raise RestError(BAD_REQUEST, str(problem)) from None
    if group:
        groups.append(_decoded(group))
    return groups


def _decoded(records: list[bytes]) -> Sequence[bodies.RawRecord]:
    return decode_body(_raw_records, b"[" + b",".join(records) + b"]")


async def _checked(groups: RawGroups, turn: Turn) -> RawGroups:
    if not groups:
        raise RestError(UNPROCESSABLE, "records must not be empty")
    for group in groups:
        if turn.is_over:
            await turn.next()
        if any(each.partition is not None and each.partition < 0 for each in group):
            raise RestError(UNPROCESSABLE, "partition must be greater than or equal to 0")
    return groups
