"""What a producer puts on a batch before it sends it: whose it is and which in its row; and a batch cut in two.

A batch without identity has no producer and no valid CRC yet: both are set here, at once, since the CRC covers them.
"""

import struct

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.records.batch import ATTRIBUTES_POSITION, TRANSACTIONAL_FLAG, read_header, set_crc
from kaspar.records.builder import build_batch
from kaspar.records.reader import iter_batch

_PRODUCER_POSITION = 43
_PRODUCER = struct.Struct(">qhi")  # producer id, epoch, base sequence
_COUNT_POSITION = 57
_COUNT = struct.Struct(">i")
_LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1


def batch_count(batch: memoryview) -> int:
    """How many records are in it."""
    count: int = _COUNT.unpack_from(batch, _COUNT_POSITION)[0]
    return count


def identify(
    batch: memoryview, producer: ProducerIdAndEpoch | None, base_sequence: int, *, transactional: bool = False
) -> None:
    """Say in the batch whose it is (nobody's, without a producer), and compute its CRC."""
    producer_id, producer_epoch = producer or (-1, -1)
    _PRODUCER.pack_into(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    if transactional:
        batch[_LOW_ATTRIBUTES_POSITION] |= TRANSACTIONAL_FLAG
    set_crc(batch, 0)


def split_batch(batch: memoryview) -> tuple[memoryview, memoryview]:
    """The records of a batch of at least two in two batches without identity, halves by count, compressed by the same
    codec at its usual level. Only done where a broker finds a batch too large: records become objects on the way."""
    header = read_header(batch, 0)
    records = [record._replace(offset=-1) for record in iter_batch(batch, 0, header)]
    middle = len(records) // 2
    first, second = (build_batch(half, codec=header.codec) for half in (records[:middle], records[middle:]))
    return memoryview(first), memoryview(second)
