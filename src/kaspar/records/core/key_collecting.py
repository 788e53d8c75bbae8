"""Finds the keys of a log's records, for the table of keys. Part of the compiled core; the rules of key_table.py
apply."""

import cython

from kaspar.records.codec import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
    from cython.cimports.kaspar.records.core import plain_runs, record_fields
else:
    from kaspar.base import primitives
    from kaspar.records import layout
    from kaspar.records.core import plain_runs, record_fields

IS_COMPILED: bool = cython.compiled

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)


@cython.final
@cython.cclass
class KeyCollector:
    """Finds the keys of records. `keys` has the position and size of each in the bytes that were read, `offsets` the
    offset of its record, and `count` is their number. They are valid until the next ones are collected."""

    keys = cython.declare(memoryview, visibility="readonly")
    offsets = cython.declare(memoryview, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    last_offset = cython.declare(cython.longlong, visibility="readonly")  # last offset of the last batch; -1: none
    records_read = cython.declare(cython.longlong, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    _keys = cython.declare("long long[::1]")
    _offsets = cython.declare("long long[::1]")

    def __init__(self) -> None:
        self.keys = self.offsets = memoryview(b"").cast("q")
        self.count = 0
        self.last_offset = -1
        self.records_read = 0
        self.is_damaged = False

    @cython.locals(data="const unsigned char[::1]")
    def collect_plain(
        self,
        buffer: Octets,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first_offset: cython.longlong,
        end_offset: cython.longlong,
    ) -> int:
        """Collect the keys from `first_offset` on of the whole batches in `buffer[start:end]`, up to one that is not
        plain, not below `end_offset`, or damaged. Returns the position of that one."""
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
        run: plain_runs.RunSize
        size: cython.Py_ssize_t
        base_offset: cython.longlong
        said: cython.longlong
        begin: cython.Py_ssize_t
        before: cython.Py_ssize_t
        with cython.nogil:
            run = plain_runs.measure_run(data, start, end)
        self._begin(run.records)
        with cython.nogil:
            while plain_runs.is_plain(data, start, end):
                base_offset = primitives.read_int64(data, start)
                if base_offset >= end_offset:
                    break
                size = layout.batch_size(data, start)
                before = self.count
                self.is_damaged = size < layout.HEADER_SIZE or size > end - start
                if not self.is_damaged:
                    said = primitives.read_int32(data, start + layout.COUNT_AT)
                    begin = start + layout.HEADER_SIZE
                    if self._collect(data, begin, start + size, base_offset, first_offset, said) != said:
                        self.is_damaged = True
                if self.is_damaged:
                    self.count = before
                    break
                self.last_offset = base_offset + primitives.read_int32(data, start + layout.LAST_OFFSET_DELTA_AT)
                start += size
        return start

    @cython.locals(data="const unsigned char[::1]")
    def collect(
        self, records: Octets, base_offset: cython.longlong, first_offset: cython.longlong, most: cython.longlong
    ) -> int:
        """Collect the keys of whole records of one batch, of which `most` are left. Returns the number of records."""
        data = records
        end: cython.Py_ssize_t = len(records)
        self._begin(plain_runs.most_records(end, most))
        found: cython.longlong
        if end < _GIL_RELEASE_BYTES:
            return self._collect(data, 0, end, base_offset, first_offset, most)
        with cython.nogil:
            found = self._collect(data, 0, end, base_offset, first_offset, most)
        return found

    def _begin(self, records: cython.Py_ssize_t) -> None:
        """Make room for the keys of this many records."""
        self.count = 0
        self.last_offset = -1
        self.is_damaged = False
        if records > len(self.offsets) or not len(self.offsets):
            self.keys = memoryview(bytearray(16 * (records + 1))).cast("q")
            self._keys = self.keys
            self.offsets = memoryview(bytearray(8 * (records + 1))).cast("q")
            self._offsets = self.offsets

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        base_offset: cython.longlong,
        first_offset: cython.longlong,
        most: cython.longlong,
    ) -> cython.longlong:
        """Collect keys. Returns the number of records. More than `most`, for which there is no room, are damage."""
        found: cython.longlong = 0
        count: cython.Py_ssize_t = self.count
        offset: cython.longlong
        record: record_fields.RecordFields
        while position < end:
            record = record_fields.read_record(data, position, end)
            if found >= most or record.problem:
                self.is_damaged = True
                break
            offset = base_offset + record.offset_delta
            if record.key_size >= 0 and offset >= first_offset:
                self._keys[2 * count] = record.key_at
                self._keys[2 * count + 1] = record.key_size
                self._offsets[count] = offset
                count += 1
            found += 1
            position = record.end
        self.count = count
        self.records_read += found
        return found
