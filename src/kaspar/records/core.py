"""The compiled core of the records package, first part: the loops that look at every byte or record of a batch.

Written in Cython's pure Python mode, so the same file runs compiled and interpreted, with the same results. Its rules:
index loops over typed memoryviews, no pointers; bounds are checked here, since compiled code does not check them; and
every number that wraps around in C is masked, since interpreted integers do not wrap. Nothing imports this module by
name: records/batch.py loads one form of it, once, for the whole process.
"""

from collections.abc import Callable

import cython
from crc32c import crc32c

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.records.codec import Codec, Octets
from kaspar.records.inflate import inflate
from kaspar.records.refusals import NotOneBatch, TakesTooLong

IS_COMPILED: bool = cython.compiled

# On which terms a batch is plain: the most bytes and the most records it may have, how many milliseconds its records
# may be older and newer than the clock, and whether they need keys.
PlainTerms = tuple[int, int, int, int, bool]

# The batch's buffer, start and end, then last_offset_delta, max_timestamp, producer_id, producer_epoch, base_sequence,
# is_transactional, and -1, since the log gives it no time: in the order in which a log takes them.
PlainBatch = tuple[bytearray | memoryview, int, int, int, int, int, int, int, bool, int]

_CODECS = tuple(Codec)

# Compressed, with a LogAppendTime, in a transaction, or control records.
_NOT_PLAIN = cython.declare(cython.int, 0x3F)

# Fewer bytes are walked over so soon that giving the GIL away, and waiting for it, costs more than it gives.
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)

# Fewer bytes are copied in less time than it takes to make a view of them.
_COPY_BELOW_BYTES = cython.declare(cython.Py_ssize_t, 1024)

_PROBLEMS = (
    "",
    "a number in record {record} is longer than its type",
    "more bytes follow the last of its {count} records",
    "record {record} is too short to be a record",
    "record {record} has another offset than its place says",
    "a key, value or header of record {record} is longer than the record",
    "record {record} has an impossible number of headers",
    "record {record} has a header without a key",
    "record {record} does not end where its length says",
    "it ends within record {record} of {count}",
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _signed(number: cython.ulonglong) -> cython.longlong:
    """The two's complement reading of a number's lowest 64 bits."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    return ((number & mask) ^ sign) - sign


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(raw: cython.ulonglong) -> cython.longlong:
    """The number that a varint of these bits stands for."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw &= mask
    return _signed((raw >> 1) ^ (0 - (raw & 1)))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _int64(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.ulonglong = 0
    index: cython.int
    for index in range(8):
        number = (number << 8) | data[position + index]
    return _signed(number)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _uint32(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.longlong = 0
    index: cython.int
    for index in range(4):
        number = (number << 8) | data[position + index]
    return number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _int32(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    sign: cython.longlong = 0x8000_0000
    return (_uint32(data, position) ^ sign) - sign


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _int16(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.longlong = (data[position] << 8) | data[position + 1]
    return (number ^ 0x8000) - 0x8000


@cython.final
@cython.cclass
class RecordWalk:
    """Checks the records of one batch, given in any number of pieces, cut anywhere.

    It looks at every field that gives the records their shape and skips the bytes of keys, values and headers, so it
    never holds any of them. It stops at the first problem.
    """

    count = cython.declare(cython.longlong, visibility="readonly")
    index = cython.declare(cython.longlong, visibility="readonly")  # the record being read
    min_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    delta_of_max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    has_keyless = cython.declare(cython.bint, visibility="readonly")
    problem = cython.declare(cython.int, visibility="readonly")
    _base_timestamp: cython.longlong
    _skip: cython.longlong  # bytes of the next piece that belong to a key, value or header already measured
    _field: cython.int  # which field of the record comes next
    _raw: cython.ulonglong  # the bits of a number whose rest is in the next piece
    _shift: cython.int
    _record_end: cython.longlong  # seen from the start of the next piece
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
        """Walk over the next piece. False once there is a problem."""
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
        # Local names, since the C compiler knows that these never change.
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
            number = _zigzag(raw)
            raw = 0
            shift = 0

            if field == at_length:
                if index >= self.count:
                    problem = bytes_left
                elif number < 6:
                    problem = record_too_short
                else:
                    record_end = position + number
                    position += 1  # the record's attributes, which mean nothing yet
                    field = at_timestamp
            elif field == at_timestamp:
                timestamp = _signed(base_timestamp + number)
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
        """No more pieces come. False if there was a problem, or is now, because a record is missing or cut off."""
        if self.problem == 0 and (self.index != self.count or self._field != 0 or self._shift != 0 or self._skip != 0):
            self.problem = 9
        return self.problem == 0

    def explain(self) -> str:
        """The problem as a sentence; empty if there is none."""
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
        self.base_offset = _int64(data, position)
        self.size = _int32(data, position + 8) + 12  # base_offset and length itself, which length does not count
        self.leader_epoch = _int32(data, position + 12)
        self.magic = data[position + 16]
        self.crc = _uint32(data, position + 17)
        self.attributes = _int16(data, position + 21)
        self.last_offset_delta = _int32(data, position + 23)
        self.base_timestamp = _int64(data, position + 27)
        self.max_timestamp = _int64(data, position + 35)
        self.producer_id = _int64(data, position + 43)
        self.producer_epoch = _int16(data, position + 51)
        self.base_sequence = _int32(data, position + 53)
        self.count = _int32(data, position + 57)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        if self.attributes & 0x07 >= len(_CODECS):
            raise MalformedBytes(f"no codec has the number {self.attributes & 0x07}")
        return _CODECS[self.attributes & 0x07]

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & 0x08 != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & 0x10 != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & 0x20 != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When a compacted topic may drop the batch's tombstones; the base timestamp then holds it."""
        return self.base_timestamp if self.attributes & 0x40 else None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(base_offset={self.base_offset}, size={self.size}, count={self.count}, "
            f"leader_epoch={self.leader_epoch}, attributes={self.attributes:#x}, max_timestamp={self.max_timestamp}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


@cython.locals(data="const unsigned char[::1]")
def read_header(buffer: Octets, position: cython.Py_ssize_t) -> BatchHeader:
    """The header at `position`. The rest of the batch need not be there. Raises MalformedBytes where none can be."""
    data = buffer
    left: cython.Py_ssize_t = len(buffer) - position
    if position < 0 or left < 61:
        raise MalformedBytes(f"a batch header takes 61 bytes, and {left} are left")
    header: BatchHeader = BatchHeader.__new__(BatchHeader)
    header._read(data, position)
    if header.magic != 2:
        raise MalformedBytes(f"a batch has magic {header.magic} instead of 2")
    if header.size < 61:
        raise MalformedBytes(f"a batch of {header.size} bytes is smaller than its own header")
    return header


@cython.final
@cython.cclass
class CheckedBatch(BatchHeader):
    """A batch whose every byte was checked: its header, where it lies, and what its records turned out to be.

    `max_timestamp` is that of the records, or -1 if none is newer; what the header said is `header_max_timestamp`.
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

    Part of a further batch after it is left out, as Kafka does, which `end` of the answer shows. What depends on the
    topic or the sender (sizes, times, keys, offsets, sequences, control batches) is for the caller to judge.

    `out_of_time` is asked after each piece that was inflated; if it says so, the check ends with TakesTooLong.
    """
    data = buffer
    if start < 0 or end > len(buffer):
        raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
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
    """`data` is `buffer`, seen in the way that is quick to read; to make such a view takes its time."""
    size: cython.Py_ssize_t = _whole_batch_size(data, start, end)
    if size <= 0:
        raise _no_batch(size)
    if data[start + 16] != 2:
        raise NotOneBatch(f"only batches with magic 2 are taken, not {data[start + 16]}")
    if start + size != end:
        further: cython.Py_ssize_t = _whole_batch_size(data, start + size, end)
        if further > 0:
            raise NotOneBatch("only one batch for a partition is taken, and there are more")
        if further != 0:
            raise _no_batch(further)
        end = start + size
    if size < 61:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"a batch has at least 61 bytes, and this one {size}")

    checked: CheckedBatch = CheckedBatch.__new__(CheckedBatch)
    checked._read(data, start)
    checked.start = start
    checked.end = end
    checked.header_max_timestamp = checked.max_timestamp

    covered = buffer[start + 21 : end] if size < _COPY_BELOW_BYTES else memoryview(buffer)[start + 21 : end]
    computed: cython.longlong = crc32c(covered, 0, size >= _GIL_RELEASE_BYTES)
    if computed != checked.crc:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"its crc is {computed}, not {checked.crc} as it says")
    count: cython.longlong = checked.count
    if count <= 0 or count - 1 != checked.last_offset_delta:
        raise Refused(
            ErrorCode.INVALID_RECORD,
            f"it says that it has {count} records, the last with offset delta {checked.last_offset_delta}",
        )
    codec: cython.int = checked.attributes & 0x07
    if codec > 4:
        # A strange code, but it is what Kafka's broker answers.
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"no codec has the number {codec}")

    walk: RecordWalk = RecordWalk.__new__(RecordWalk)
    walk._begin(count, checked.base_timestamp)
    if codec == 0:
        walk._walk_with_or_without_gil(data, start + 61, end)
    else:
        for piece in inflate(_CODECS[codec], memoryview(buffer)[start + 61 : end]):
            if not walk.feed(piece):
                break
            if out_of_time is not None and out_of_time():
                raise TakesTooLong
    if not walk.finish():
        raise Refused(ErrorCode.INVALID_RECORD, walk.explain())

    checked.has_keyless = walk.has_keyless
    if checked.attributes & 0x08:  # every record's time is then the one in the header
        checked.min_timestamp = checked.header_max_timestamp
        checked.delta_of_max_timestamp = 0
    else:
        checked.min_timestamp = walk.min_timestamp
        checked.max_timestamp = walk.max_timestamp
        checked.delta_of_max_timestamp = walk.delta_of_max_timestamp
    return checked


@cython.locals(data="const unsigned char[::1]")
def check_plain_batch(
    buffer: bytearray | memoryview,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    terms: PlainTerms,
    now_ms: cython.longlong,
) -> PlainBatch | None:
    """Check a batch as `check_batch` does, if it is one that a log takes as it comes. None where anything about it asks
    for a closer look: it is too large, compressed, not the whole of `buffer[start:end]`, in a transaction or a control
    batch, its time, keys or sequence may be refused, or its header has to be changed.
    """
    data = buffer
    max_bytes: cython.Py_ssize_t = terms[0]
    max_count: cython.longlong = terms[1]
    before_max_ms: cython.longlong = terms[2]
    after_max_ms: cython.longlong = terms[3]
    needs_keys: cython.bint = terms[4]
    if start < 0 or end > len(buffer):
        raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
    if end - start > max_bytes or end - start < 61 or data[start + 22] & 0x07 or _int32(data, start + 57) > max_count:
        return None
    checked: CheckedBatch = _check_batch(data, buffer, start, end, None)
    if (
        checked.attributes & _NOT_PLAIN
        or checked.end != end
        or checked.base_offset != 0
        or (checked.producer_id >= 0 and checked.base_sequence < 0)
        or (needs_keys and checked.has_keyless)
        or checked.max_timestamp != checked.header_max_timestamp
        or checked.max_timestamp - now_ms > after_max_ms
        or checked.min_timestamp < now_ms - before_max_ms
    ):
        return None
    return (
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
    )


@cython.locals(data="unsigned char[::1]")
def place_batch(
    buffer: bytearray | memoryview,
    start: cython.Py_ssize_t,
    base_offset: cython.longlong,
    leader_epoch: cython.longlong,
) -> None:
    """Give the batch its place in the log. The CRC does not cover these fields, so that a leader may set them."""
    data = buffer
    if start < 0 or len(buffer) - start < 61:
        raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
    index: cython.int
    for index in range(8):
        data[start + index] = (base_offset >> (56 - 8 * index)) & 0xFF
    for index in range(4):
        data[start + 12 + index] = (leader_epoch >> (24 - 8 * index)) & 0xFF


@cython.cfunc
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _whole_batch_size(data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of the whole batch at `start`: 0 if there is only part of one, -1 or -2 if it cannot be a batch."""
    if end - start < 12:
        return 0
    length: cython.longlong = _int32(data, start + 8)
    if length < 14:
        return -1
    if end - start < 17:
        return 0
    if data[start + 16] > 2:
        return -2
    if length + 12 > end - start:
        return 0
    return length + 12


def _no_batch(size: int) -> Refused:
    if size == 0:
        return NotOneBatch("there must be a whole batch for the partition, and there is none")
    if size == -1:
        return Refused(ErrorCode.CORRUPT_MESSAGE, "a batch gives itself fewer bytes than the smallest one has")
    return Refused(ErrorCode.CORRUPT_MESSAGE, "a batch has a magic that is not known")
