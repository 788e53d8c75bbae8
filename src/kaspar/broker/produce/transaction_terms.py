"""The transaction that the batches of a Produce request belong to."""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.produce.verification import TransactionSupportedOperation
from kaspar.protocol.produce import ProduceRequest
from kaspar.records.layout import (
    HEADER_SIZE,
    LENGTH_AT,
    LENGTH_OVERHEAD,
    LOW_ATTRIBUTES_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL_FLAG,
)

_LENGTH: Final = struct.Struct(f">{LENGTH_AT}xi")
_PRODUCER: Final = struct.Struct(f">{PRODUCER_ID_AT}xqhi")  # producer id, producer epoch, base sequence


class TransactionTerms(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    support: TransactionSupportedOperation


def terms_of(
    request: ProduceRequest,
    frame: memoryview,
    version: int,
    may_use: Callable[[str], bool] = lambda transactional_id: True,
) -> TransactionTerms | None:
    """The transaction of a request; None if no batch is part of one. Raises Refused if the whole request is refused.
    `may_use`: whether the client may use a transactional id.
    """
    for _, batches in request.topics:
        for _, start, end in batches:
            # Checked without a call first, because hardly any batch is transactional.
            if (
                end - start >= HEADER_SIZE
                and frame[start + LOW_ATTRIBUTES_AT] & TRANSACTIONAL_FLAG
                and is_transactional(frame, start, end)
            ):
                return _terms_of_transaction(request, frame, version, may_use)
    return None


def _terms_of_transaction(
    request: ProduceRequest, frame: memoryview, version: int, may_use: Callable[[str], bool]
) -> TransactionTerms | None:
    if request.transactional_id is None:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a batch is transactional, but the request has no transactional id",
        )
    if not may_use(request.transactional_id):
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed.")
    producers = set()
    for _, batches in request.topics:
        for _, start, end in batches:
            if is_transactional(frame, start, end):
                producer_id, producer_epoch, _ = _PRODUCER.unpack_from(frame, start)
                if producer_id >= 0:
                    producers.add(ProducerIdAndEpoch(producer_id, producer_epoch))
    if len(producers) > 1:
        raise Refused(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    if not producers:
        return None  # they belong to no transaction: Kafka accepts them like any other batch
    return TransactionTerms(
        request.transactional_id, producers.pop(), TransactionSupportedOperation.of_produce(version)
    )


def is_transactional(frame: memoryview, start: int, end: int) -> bool:
    """Whether a whole batch begins there that is transactional. Other bytes are refused later."""
    if end - start < HEADER_SIZE or not frame[start + LOW_ATTRIBUTES_AT] & TRANSACTIONAL_FLAG:
        return False
    size: int = _LENGTH.unpack_from(frame, start)[0] + LENGTH_OVERHEAD
    return HEADER_SIZE <= size <= end - start


def base_sequence_of(batch: bytearray) -> int:
    base_sequence: int = _PRODUCER.unpack_from(batch)[2]
    return base_sequence
