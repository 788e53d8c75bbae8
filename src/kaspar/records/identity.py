"""What a producer does with a batch before sending it: sets producer, sequence and CRC, or splits the batch in two.

A batch without identity has no producer and no valid CRC yet: both are set together here, since the CRC covers the
producer.
"""

import struct

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.records.batch import read_header, set_crc
from kaspar.records.builder import build_batch
from kaspar.records.layout import COUNT_AT, LOW_ATTRIBUTES_AT, PRODUCER_ID_AT, TRANSACTIONAL_FLAG
from kaspar.records.reader import iter_batch

_PRODUCER = struct.Struct(">qhi")  # producer id, epoch, base sequence
_COUNT = struct.Struct(">i")


def batch_count(batch: memoryview) -> int:
    """The number of records of a batch."""
    count: int = _COUNT.unpack_from(batch, COUNT_AT)[0]
    return count


def identify(
    batch: memoryview, producer: ProducerIdAndEpoch | None, base_sequence: int, *, transactional: bool = False
) -> None:
    """Set the producer (none: the batch is not idempotent) and base sequence of the batch, and compute its CRC."""
    producer_id, producer_epoch = producer or (-1, -1)
    _PRODUCER.pack_into(batch, PRODUCER_ID_AT, producer_id, producer_epoch, base_sequence)
    if transactional:
        batch[LOW_ATTRIBUTES_AT] |= TRANSACTIONAL_FLAG
    set_crc(batch, 0)


def split_batch(batch: memoryview) -> tuple[memoryview, memoryview]:
    """Split a batch of at least two records into two of half as many, without identity, compressed by the same codec at
    its default level. Slow, since records become objects; needed only when a broker finds a batch too large."""
    header = read_header(batch, 0)
    records = [record._replace(offset=-1) for record in iter_batch(batch, 0, header)]
    middle = len(records) // 2
    first, second = (build_batch(half, codec=header.codec) for half in (records[:middle], records[middle:]))
    return memoryview(first), memoryview(second)
