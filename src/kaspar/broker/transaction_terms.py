"""What a produce request says about the transaction that its batches belong to."""

import struct
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.verification import TransactionSupport
from kaspar.protocol.produce import ProduceRequest
from kaspar.records import HEADER_SIZE

ATTRIBUTES_LOW_BYTE: Final = 22
TRANSACTIONAL: Final = 0x10
SIZE_OVERHEAD: Final = 12  # the base offset and the size itself
_SIZE: Final = struct.Struct(">8xi")
_PRODUCER: Final = struct.Struct(">43xqhi")  # producer id, producer epoch, base sequence


class TransactionTerms(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    support: TransactionSupport


def terms_of(request: ProduceRequest, frame: memoryview, version: int) -> TransactionTerms | None:
    """None if no batch is part of a transaction. Refused if all of the request is to be refused."""
    for _, batches in request.topics:
        for _, start, end in batches:
            # First without a call: nearly every batch is looked at for nothing.
            if (
                end - start >= HEADER_SIZE
                and frame[start + ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL
                and is_transactional(frame, start, end)
            ):
                return _terms_of_transaction(request, frame, version)
    return None


def _terms_of_transaction(request: ProduceRequest, frame: memoryview, version: int) -> TransactionTerms | None:
    if request.transactional_id is None:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a batch is transactional, and the request is not"
        )
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
        return None  # such batches belong to nobody's transaction: Kafka takes them as any other
    return TransactionTerms(request.transactional_id, producers.pop(), TransactionSupport.of_produce(version))


def is_transactional(frame: memoryview, start: int, end: int) -> bool:
    """Whether a whole batch begins there that says so: any other bytes say nothing, and are refused later."""
    if end - start < HEADER_SIZE or not frame[start + ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL:
        return False
    size: int = _SIZE.unpack_from(frame, start)[0] + SIZE_OVERHEAD
    return HEADER_SIZE <= size <= end - start


def base_sequence_of(batch: bytearray) -> int:
    base_sequence: int = _PRODUCER.unpack_from(batch)[2]
    return base_sequence
