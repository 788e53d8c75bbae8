"""Record batches, format v2: reading, checking, building and compressing them."""

from kaspar.records.batch import (
    BatchHeader,
    CheckedBatch,
    PlainTerms,
    check_batch,
    check_plain_batch,
    crc_matches,
    iter_headers,
    place_batch,
    read_header,
    set_crc,
    set_max_timestamp,
)
from kaspar.records.builder import build_batch, build_fence, build_plain_batch, recompress
from kaspar.records.codec import Codec, Octets, TimestampType
from kaspar.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    build_leader_change,
    control_type,
    read_end_transaction_marker,
)
from kaspar.records.cost import INLINE_CHECK_NS, QUICK_RECORDS, check_cost_ns, checks_inline
from kaspar.records.inflate import INFLATED_BYTES_LIMIT
from kaspar.records.layout import HEADER_SIZE
from kaspar.records.prepared import PreparedBatch
from kaspar.records.reader import iter_batch, iter_records, iter_visible
from kaspar.records.record import Header, Record
from kaspar.records.refusals import NotOneBatch, TakesTooLong

__all__ = [
    "HEADER_SIZE",
    "INFLATED_BYTES_LIMIT",
    "INLINE_CHECK_NS",
    "QUICK_RECORDS",
    "BatchHeader",
    "CheckedBatch",
    "Codec",
    "ControlType",
    "EndTransactionMarker",
    "Header",
    "NotOneBatch",
    "Octets",
    "PlainTerms",
    "PreparedBatch",
    "Record",
    "TakesTooLong",
    "TimestampType",
    "build_batch",
    "build_end_transaction_marker",
    "build_fence",
    "build_leader_change",
    "build_plain_batch",
    "check_batch",
    "check_cost_ns",
    "check_plain_batch",
    "checks_inline",
    "control_type",
    "crc_matches",
    "iter_batch",
    "iter_headers",
    "iter_records",
    "iter_visible",
    "place_batch",
    "read_end_transaction_marker",
    "read_header",
    "recompress",
    "set_crc",
    "set_max_timestamp",
]
