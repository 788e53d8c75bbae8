"""Runs of plain batches (neither compressed nor transactional nor control), which compaction reads in one call.

There is room for as many records as a batch's header counts, but never for more than fit into its bytes. If a batch has
more records than its header counts, it is found to be damaged before any record is written beyond the room.

An inlined module: see kaspar/base/primitives.py for its rules.
"""

from typing import Final, NamedTuple

import cython

from kaspar.base.primitives import Octets, read_int32
from kaspar.records.layout import COUNT_AT, HEADER_SIZE, LOW_ATTRIBUTES_AT, SMALLEST_RECORD_SIZE, batch_size

NOT_PLAIN_MASK: Final = 0x37  # compressed, transactional or control


class RunSize(NamedTuple):
    """The most batches and records that can be in a run."""

    batches: cython.Py_ssize_t
    records: cython.longlong


def is_plain(data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the header of a plain batch is at `start`."""
    return end - start >= HEADER_SIZE and (data[start + LOW_ATTRIBUTES_AT] & NOT_PLAIN_MASK) == 0


def measure_run(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> RunSize:
    """Measure the run of whole plain batches from `position` on."""
    size: cython.longlong
    batches: cython.Py_ssize_t = 0
    records: cython.longlong = 0
    while is_plain(data, position, end):
        size = batch_size(data, position)
        if size < HEADER_SIZE or size > end - position:
            break
        batches += 1
        records += most_records(size - HEADER_SIZE, read_int32(data, position + COUNT_AT))
        position += size
    return RunSize(batches, records)


def most_records(size: cython.longlong, count: cython.longlong) -> cython.longlong:
    """How many records can be in `size` bytes of a batch whose header counts `count` of them."""
    most: cython.longlong = size // SMALLEST_RECORD_SIZE if size > 0 else 0
    if count < most:
        most = count if count > 0 else 0
    return most
