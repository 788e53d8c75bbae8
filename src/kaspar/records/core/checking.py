"""Reads the headers of batches and checks, record by record, what producers send. Part of the compiled core.

The compiled core is written in Cython's pure Python mode, so the same file runs compiled and interpreted, with the same
results. Its rules: index loops over typed memoryviews, no pointers; bounds are checked by this code, since the compiler
adds no checks; and every number that wraps around in C is masked, since interpreted integers do not wrap.

Header, walk and check are in one file, since an extension cannot use the C types of another.
"""

from collections.abc import Callable

import cython
from crc32c import crc32c

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.named_tuples import new_tuple
from kaspar.records.codec import Codec, Octets
from kaspar.records.inflate import inflate
from kaspar.records.prepared import PreparedBatch
from kaspar.records.refusals import NotOneBatch, TakesTooLong

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

IS_COMPILED: bool = cython.compiled

_CODECS = tuple(Codec)

# Compressed, with LogAppendTime, transactional or control.
_NOT_PLAIN_MASK = cython.declare(cython.int, 0x3F)

# Kafka's LegacyRecord.RECORD_OVERHEAD_V0 after offset and length: no batch of any format is smaller.
_SMALLEST_MESSAGE_BYTES = cython.declare(cython.Py_ssize_t, 26)

# Walking over fewer bytes takes less time than releasing the GIL and waiting for it again.
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)

# Copying fewer bytes takes less time than creating a view of them.
_COPY_BELOW_BYTES = cython.declare(cython.Py_ssize_t, 1024)

_PROBLEMS = (
    "",
    "a varint in record {record} is longer than its type",
    "bytes follow the last of {count} records",
    "record {record} is shorter than the smallest possible record",
    "record {record} has an offset delta other than {record}",
    "a key, value or header of record {record} extends beyond the record",
    "record {record} has an invalid number of headers",
    "record {record} has a header without a key",
    "record {record} does not end where its length says",
    "the batch ends within record {record} of {count}",
)


@cython.final
@cython.cclass
class RecordWalk:
    """Checks the records of one batch, given in any number of pieces, cut anywhere.

    It reads every length, timestamp and offset delta, and skips the bytes of keys, values and headers, so it never
    stores any of them. It stops at the first problem.
    """

    count = cython.declare(cython.longlong, visibility="readonly")
    index = cython.declare(cython.longlong, visibility="readonly")  # the record being read
    min_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    delta_of_max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    has_keyless = cython.declare(cython.bint, visibility="readonly")
    problem = cython.declare(cython.int, visibility="readonly")
    _base_timestamp: cython.longlong
    _skip: cython.longlong  # bytes of the next piece that belong to a key, value or header of known length
    _field: cython.int  # the record's field that comes next
    _raw: cython.ulonglong  # the bits so far of a varint that continues in the next piece
    _shift: cython.int
    _record_end: cython.longlong  # relative to the start of the next piece
    _headers_left: cython.longlong

    def __init__(self, count: cython.longlong, base_timestamp: cython.longlong) -> None:
        self._begin(count, base_timestamp)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _begin(self, count: cython.longlong, base_timestamp: cython.longlong) -> cython.void:
        self.count = count
        self.index = 0
        self.min_timestamp = 0x7FFF_FFFF_FFFF_FFFF
        self.max_timestamp = -1
        self.delta_of_max_timestamp = 0
        self.has_keyless = False
        self.problem = 0
        self._base_timestamp = base_timestamp
        self._skip = 0
        self._field = 0
        self._raw = 0
        self._shift = 0
        self._record_end = 0
        self._headers_left = 0

    @cython.locals(view="const unsigned char[::1]")
    def feed(self, piece: Octets) -> bool:
        """Walk over the next piece. Returns False once there is a problem."""
        view = piece
        self._walk_with_or_without_gil(view, 0, len(piece))
        return self.problem == 0

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _walk_with_or_without_gil(
        self, data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.void:
        if end - position < _GIL_RELEASE_BYTES:
            self._walk(data, position, end)
        else:
            with cython.nogil:
                self._walk(data, position, end)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _walk(self, data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        # Local names, which the C compiler knows to be constant.
        at_length: cython.int = 0
        at_timestamp: cython.int = 1
        at_offset: cython.int = 2
        at_key: cython.int = 3
        at_value: cython.int = 4
        at_header_count: cython.int = 5
        at_header_key: cython.int = 6
        low_32_bits: cython.ulonglong = 0xFFFF_FFFF
        number_too_long: cython.int = 1
        bytes_left: cython.int = 2
        record_too_short: cython.int = 3
        wrong_offset: cython.int = 4
        field_too_long: cython.int = 5
        wrong_header_count: cython.int = 6
        no_header_key: cython.int = 7
        wrong_record_end: cython.int = 8

        position: cython.longlong = start + self._skip
        record_end: cython.longlong = start + self._record_end
        field: cython.int = self._field
        raw: cython.ulonglong = self._raw
        shift: cython.int = self._shift
        index: cython.longlong = self.index
        headers_left: cython.longlong = self._headers_left
        base_timestamp: cython.ulonglong = self._base_timestamp
        timestamp: cython.longlong
        number: cython.longlong
        octet: cython.ulonglong
        problem: cython.int = self.problem

        while position < end and problem == 0:
            octet = data[position]
            position += 1
            raw |= (octet & 0x7F) << shift
            if octet >= 0x80:
                shift += 7
                if shift >= (70 if field == at_timestamp else 35):
                    problem = number_too_long
                continue
            if field != at_timestamp:
                raw &= low_32_bits
            number = primitives.decode_zigzag(raw)
            raw = 0
            shift = 0

            if field == at_length:
                if index >= self.count:
                    problem = bytes_left
                elif number < 6:
                    problem = record_too_short
                else:
                    record_end = position + number
                    position += 1  # the record's attributes, which have no meaning yet
                    field = at_timestamp
            elif field == at_timestamp:
                timestamp = primitives.wrap_int64(base_timestamp + number)
                if timestamp < self.min_timestamp:
                    self.min_timestamp = timestamp
                if timestamp > self.max_timestamp:
                    self.max_timestamp = timestamp
                    self.delta_of_max_timestamp = index
                field = at_offset
            elif field == at_offset:
                if number != index:
                    problem = wrong_offset
                field = at_key
            elif field == at_key:
                if number < 0:
                    self.has_keyless = True
                elif number > record_end - position:
                    problem = field_too_long
                else:
                    position += number
                field = at_value
            elif field == at_header_count:
                if number < 0 or number > record_end - position:
                    problem = wrong_header_count
                headers_left = number
                field = at_header_key
            elif field == at_header_key:
                if number < 0:
                    problem = no_header_key
                elif number > record_end - position:
                    problem = field_too_long
                else:
                    position += number
                field = 7
            else:
                if number > record_end - position:
                    problem = field_too_long
                elif number > 0:
                    position += number
                if field == at_value:
                    field = at_header_count
                else:
                    headers_left -= 1
                    field = at_header_key

            if field == at_header_key and headers_left == 0 and problem == 0:
                if position != record_end:
                    problem = wrong_record_end
                index += 1
                field = at_length

        self.index = index
        self.problem = problem
        self._skip = position - end if position > end else 0
        self._record_end = record_end - end
        self._field = field
        self._raw = raw
        self._shift = shift
        self._headers_left = headers_left

    @cython.ccall
    @cython.exceptval(check=False)
    def finish(self) -> cython.bint:
        """End the walk after the last piece. False if there was a problem, or if a record is missing or cut off."""
        if self.problem == 0 and (self.index != self.count or self._field != 0 or self._shift != 0 or self._skip != 0):
            self.problem = 9
        return self.problem == 0

    def explain(self) -> str:
        """The problem in words; empty if there is none."""
        return _PROBLEMS[self.problem].format(record=self.index, count=self.count)


@cython.cclass
class BatchHeader:
    """The header of a batch, read-only. `size` is that of the whole batch, in bytes."""

    base_offset = cython.declare(cython.longlong, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    leader_epoch = cython.declare(cython.int, visibility="readonly")
    magic = cython.declare(cython.int, visibility="readonly")
    crc = cython.declare(cython.longlong, visibility="readonly")
    attributes = cython.declare(cython.int, visibility="readonly")
    last_offset_delta = cython.declare(cython.int, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    producer_id = cython.declare(cython.longlong, visibility="readonly")
    producer_epoch = cython.declare(cython.int, visibility="readonly")
    base_sequence = cython.declare(cython.int, visibility="readonly")
    count = cython.declare(cython.int, visibility="readonly")

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _read(self, data: Octets, position: cython.Py_ssize_t) -> cython.void:
        self.base_offset = primitives.read_int64(data, position)
        self.size = layout.batch_size(data, position)
        self.leader_epoch = primitives.read_int32(data, position + layout.LEADER_EPOCH_AT)
        self.magic = data[position + layout.MAGIC_AT]
        self.crc = primitives.read_uint32(data, position + layout.CRC_AT)
        self.attributes = primitives.read_int16(data, position + layout.ATTRIBUTES_AT)
        self.last_offset_delta = primitives.read_int32(data, position + layout.LAST_OFFSET_DELTA_AT)
        self.base_timestamp = primitives.read_int64(data, position + layout.BASE_TIMESTAMP_AT)
        self.max_timestamp = primitives.read_int64(data, position + layout.MAX_TIMESTAMP_AT)
        self.producer_id = primitives.read_int64(data, position + layout.PRODUCER_ID_AT)
        self.producer_epoch = primitives.read_int16(data, position + layout.PRODUCER_EPOCH_AT)
        self.base_sequence = primitives.read_int32(data, position + layout.BASE_SEQUENCE_AT)
        self.count = primitives.read_int32(data, position + layout.COUNT_AT)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        codec: cython.int = self.attributes & layout.CODEC_MASK
        if codec >= len(_CODECS):
            raise MalformedBytes(f"unknown compression codec {codec}")
        return _CODECS[codec]

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & layout.LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & layout.TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & layout.CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When a compacted topic may drop the batch's tombstones, if set. It is stored as the base timestamp."""
        return self.base_timestamp if self.attributes & layout.DELETE_HORIZON_FLAG else None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(base_offset={self.base_offset}, size={self.size}, count={self.count}, "
            f"leader_epoch={self.leader_epoch}, attributes={self.attributes:#x}, max_timestamp={self.max_timestamp}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


@cython.locals(data="const unsigned char[::1]")
def read_header(buffer: Octets, position: cython.Py_ssize_t) -> BatchHeader:
    """Read the header at `position`; the rest of the batch need not be in the buffer. Raises MalformedBytes."""
    data = buffer
    left: cython.Py_ssize_t = len(buffer) - position
    if position < 0 or left < layout.HEADER_SIZE:
        raise MalformedBytes(f"a batch header needs {layout.HEADER_SIZE} bytes, but {left} are left")
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    header._read(data, position)
    if header.magic != layout.MAGIC:
        raise MalformedBytes(f"a batch has magic {header.magic} instead of {layout.MAGIC}")
    if header.size < layout.HEADER_SIZE:
        raise MalformedBytes(f"a batch of {header.size} bytes is smaller than its own header")
    return header


@cython.final
@cython.cclass
class CheckedBatch(BatchHeader):
    """A batch that was checked as a whole: its header, its position, and facts about its records.

    `max_timestamp` is the largest of the records, or -1 if none is newer; `header_max_timestamp` is that of the header.
    """

    start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    header_max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    min_timestamp = cython.declare(cython.longlong, visibility="readonly")
    delta_of_max_timestamp = cython.declare(cython.int, visibility="readonly")
    has_keyless = cython.declare(cython.bint, visibility="readonly")


@cython.locals(data="const unsigned char[::1]")
def check_batch(
    buffer: Octets,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    out_of_time: Callable[[], bool] | None = None,
) -> CheckedBatch:
    """Check the one batch that a producer sent in `buffer[start:end]`, all of it, and refuse it as Kafka does.

    A partial batch after it is ignored, as in Kafka; the result's `end` excludes it. Checks that depend on the topic or
    the sender (sizes, timestamps, keys, offsets, sequences, control batches) are left to the caller.

    `out_of_time` is called after each inflated piece; once it returns True, the check raises TakesTooLong.
    """
    data = buffer
    if start < 0 or end > len(buffer):
        raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
    return _check_batch(data, buffer, start, end, out_of_time)


@cython.cfunc
@cython.locals(data="const unsigned char[::1]")
def _check_batch(
    data: Octets,
    buffer: Octets,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    out_of_time: Callable[[], bool] | None,
) -> CheckedBatch:
    """Implements `check_batch`. `data` is a typed view of `buffer`, which is expensive to create."""
    size: cython.Py_ssize_t = _whole_batch_size(data, start, end)
    if size <= 0:
        raise _no_batch(size)
    if data[start + layout.MAGIC_AT] != layout.MAGIC:
        raise NotOneBatch(f"only batches with magic 2 are accepted, not {data[start + layout.MAGIC_AT]}")
    if start + size != end:
        further: cython.Py_ssize_t = _whole_batch_size(data, start + size, end)
        if further > 0:
            raise NotOneBatch("only one record batch per partition is allowed")
        if further != 0:
            raise _no_batch(further)
        end = start + size
    if size < layout.HEADER_SIZE:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes is smaller than its own header")

    checked: CheckedBatch = CheckedBatch.__new__(CheckedBatch)
    checked._read(data, start)
    checked.start = start
    checked.end = end
    checked.header_max_timestamp = checked.max_timestamp

    covered_from: cython.Py_ssize_t = start + layout.CRC_COVERS_FROM
    covered = buffer[covered_from:end] if size < _COPY_BELOW_BYTES else memoryview(buffer)[covered_from:end]
    computed: cython.longlong = crc32c(covered, 0, size >= _GIL_RELEASE_BYTES)
    if computed != checked.crc:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"the CRC is {computed}, but the header says {checked.crc}")
    count: cython.longlong = checked.count
    if count <= 0 or count - 1 != checked.last_offset_delta:
        raise Refused(
            ErrorCode.INVALID_RECORD,
            f"the header says {count} records, but a last offset delta of {checked.last_offset_delta}",
        )
    codec: cython.int = checked.attributes & layout.CODEC_MASK
    if codec > 4:
        # An unusual code, but it is the one that Kafka's broker sends.
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression codec {codec}")

    walk: RecordWalk = RecordWalk.__new__(RecordWalk)
    walk._begin(count, checked.base_timestamp)
    if codec == 0:
        walk._walk_with_or_without_gil(data, start + layout.HEADER_SIZE, end)
    else:
        for piece in inflate(_CODECS[codec], memoryview(buffer)[start + layout.HEADER_SIZE : end]):
            if not walk.feed(piece):
                break
            if out_of_time is not None and out_of_time():
                raise TakesTooLong
    if not walk.finish():
        raise Refused(ErrorCode.INVALID_RECORD, walk.explain())

    checked.has_keyless = walk.has_keyless
    if checked.attributes & layout.LOG_APPEND_TIME_FLAG:  # all records then have the timestamp of the header
        checked.min_timestamp = checked.header_max_timestamp
        checked.delta_of_max_timestamp = 0
    else:
        checked.min_timestamp = walk.min_timestamp
        checked.max_timestamp = walk.max_timestamp
        checked.delta_of_max_timestamp = walk.delta_of_max_timestamp
    return checked


@cython.final
@cython.cclass
class PlainTerms:
    """The conditions under which a topic takes a batch unchanged: the most bytes and records that it may have, by how
    many milliseconds its records may be older and newer than the clock, and whether they need keys."""

    max_bytes = cython.declare(cython.Py_ssize_t, visibility="readonly")
    max_records = cython.declare(cython.longlong, visibility="readonly")
    before_max_ms = cython.declare(cython.longlong, visibility="readonly")
    after_max_ms = cython.declare(cython.longlong, visibility="readonly")
    needs_keys = cython.declare(cython.bint, visibility="readonly")

    def __init__(
        self,
        max_bytes: cython.Py_ssize_t,
        max_records: cython.longlong,
        before_max_ms: cython.longlong,
        after_max_ms: cython.longlong,
        needs_keys: cython.bint,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms
        self.needs_keys = needs_keys


@cython.locals(data="const unsigned char[::1]")
def check_plain_batch(
    buffer: bytearray | memoryview,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    terms: PlainTerms,
    now_ms: cython.longlong,
) -> PreparedBatch | None:
    """Check a batch like `check_batch`, if it can be appended unchanged. None if it needs the full check: it is too
    large, compressed, not all of `buffer[start:end]`, transactional or a control batch, its timestamps, keys or
    sequence may be refused, or its header has to be changed.
    """
    data = buffer
    if start < 0 or end > len(buffer):
        raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
    if (
        end - start > terms.max_bytes
        or end - start < layout.HEADER_SIZE
        or data[start + layout.LOW_ATTRIBUTES_AT] & layout.CODEC_MASK
        or primitives.read_int32(data, start + layout.COUNT_AT) > terms.max_records
    ):
        return None
    checked: CheckedBatch = _check_batch(data, buffer, start, end, None)
    if (
        checked.attributes & _NOT_PLAIN_MASK
        or checked.end != end
        or checked.base_offset != 0
        or (checked.producer_id >= 0 and checked.base_sequence < 0)
        or (terms.needs_keys and checked.has_keyless)
        or checked.max_timestamp != checked.header_max_timestamp
        or checked.max_timestamp - now_ms > terms.after_max_ms
        or checked.min_timestamp < now_ms - terms.before_max_ms
    ):
        return None
    return new_tuple(
        PreparedBatch,
        (
            buffer,
            start,
            end,
            checked.last_offset_delta,
            checked.max_timestamp,
            checked.producer_id,
            checked.producer_epoch,
            checked.base_sequence,
            False,
            -1,
        ),
    )


@cython.locals(data="unsigned char[::1]")
def place_batch(
    buffer: bytearray | memoryview,
    start: cython.Py_ssize_t,
    base_offset: cython.longlong,
    leader_epoch: cython.longlong,
) -> None:
    """Set the batch's offset in the log and its leader epoch, which the CRC does not cover so that a leader may do
    this."""
    data = buffer
    if start < 0 or len(buffer) - start < layout.HEADER_SIZE:
        raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
    primitives.write_int64(data, start, base_offset)
    primitives.write_int32(data, start + layout.LEADER_EPOCH_AT, leader_epoch)


@cython.cfunc
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _whole_batch_size(data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of the whole batch at `start`: 0 if it is incomplete, -1 or -2 if it cannot be a batch."""
    if end - start < layout.LENGTH_OVERHEAD:
        return 0
    size: cython.longlong = layout.batch_size(data, start)
    if size < _SMALLEST_MESSAGE_BYTES:
        return -1
    if end - start <= layout.MAGIC_AT:
        return 0
    if data[start + layout.MAGIC_AT] > layout.MAGIC:
        return -2
    return size if size <= end - start else 0


def _no_batch(size: int) -> Refused:
    if size == 0:
        return NotOneBatch("no complete record batch was sent for the partition")
    if size == -1:
        return Refused(ErrorCode.CORRUPT_MESSAGE, "the length of a batch is below the minimum")
    return Refused(ErrorCode.CORRUPT_MESSAGE, "a batch has an unknown magic")
