"""Fills columns in Arrow's layout with Avro records. Part of the compiled core, and subject to the rules of
records/core/checking.py: no Python object is created for a value, no length is trusted, and a record that is not valid
Avro of its schema is null and leaves nothing behind in any column.

A record is read by a tree of steps, one for each type of the writer's schema, in the order of its bytes. A step reads a
value and appends it to its column, or skips it if it has none. avro_program.py plans the steps.
"""

import cython

from kaspar.serialization.core import avro_steps

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
else:
    from kaspar.base import primitives

IS_COMPILED: bool = cython.compiled

# The constants of avro_steps.py with C types.
_BITS = cython.declare(cython.int, avro_steps.BITS)
_INTS = cython.declare(cython.int, avro_steps.INTS)
_LONGS = cython.declare(cython.int, avro_steps.LONGS)
_FLOATS = cython.declare(cython.int, avro_steps.FLOATS)
_DOUBLES = cython.declare(cython.int, avro_steps.DOUBLES)
_DECIMALS = cython.declare(cython.int, avro_steps.DECIMALS)
_OCTETS = cython.declare(cython.int, avro_steps.OCTETS)
_LISTS = cython.declare(cython.int, avro_steps.LISTS)
_STRUCTS = cython.declare(cython.int, avro_steps.STRUCTS)

_NULL = cython.declare(cython.int, avro_steps.NULL)
_BOOLEAN = cython.declare(cython.int, avro_steps.BOOLEAN)
_INT = cython.declare(cython.int, avro_steps.INT)
_LONG = cython.declare(cython.int, avro_steps.LONG)
_MILLIS = cython.declare(cython.int, avro_steps.MILLIS)
_FLOAT = cython.declare(cython.int, avro_steps.FLOAT)
_DOUBLE = cython.declare(cython.int, avro_steps.DOUBLE)
_BYTES = cython.declare(cython.int, avro_steps.BYTES)
_STRING = cython.declare(cython.int, avro_steps.STRING)
_FIXED = cython.declare(cython.int, avro_steps.FIXED)
_ENUM = cython.declare(cython.int, avro_steps.ENUM)
_DECIMAL_BYTES = cython.declare(cython.int, avro_steps.DECIMAL_BYTES)
_DECIMAL_FIXED = cython.declare(cython.int, avro_steps.DECIMAL_FIXED)
_RECORD = cython.declare(cython.int, avro_steps.RECORD)
_ARRAY = cython.declare(cython.int, avro_steps.ARRAY)
_MAP = cython.declare(cython.int, avro_steps.MAP)
_UNION = cython.declare(cython.int, avro_steps.UNION)
_DEFAULT = cython.declare(cython.int, avro_steps.DEFAULT)
_REST = cython.declare(cython.int, avro_steps.REST)

_FINE = cython.declare(cython.int, avro_steps.FINE)
_ENDS_TOO_EARLY = cython.declare(cython.int, avro_steps.ENDS_TOO_EARLY)
_BAD_NUMBER = cython.declare(cython.int, avro_steps.BAD_NUMBER)
_TOO_LARGE = cython.declare(cython.int, avro_steps.TOO_LARGE)
_NOT_UTF8 = cython.declare(cython.int, avro_steps.NOT_UTF8)
_NO_SUCH_BRANCH = cython.declare(cython.int, avro_steps.NO_SUCH_BRANCH)
_NO_SUCH_SYMBOL = cython.declare(cython.int, avro_steps.NO_SUCH_SYMBOL)
_NEGATIVE_LENGTH = cython.declare(cython.int, avro_steps.NEGATIVE_LENGTH)
_LEFT_OVER = cython.declare(cython.int, avro_steps.LEFT_OVER)
_NOT_IN_READER = cython.declare(cython.int, avro_steps.NOT_IN_READER)
_COLUMN_FULL = cython.declare(cython.int, avro_steps.COLUMN_FULL)
_TOO_DEEP = cython.declare(cython.int, avro_steps.TOO_DEEP)

_MAX_COLUMN = cython.declare(cython.longlong, 0x7FFF_FFFF)  # rows or bytes: offsets have 32 bits
_MAX_MILLIS = cython.declare(cython.longlong, 9_223_372_036_854_775)
_MAX_DEPTH = cython.declare(cython.int, 200)  # nested records; only skipped types can exceed this


@cython.final
@cython.cclass
class Column:
    """One column and its inner columns. `storage` is one of the kinds above."""

    storage = cython.declare(cython.int, visibility="readonly")
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")  # bytes used in OCTETS
    has_nulls = cython.declare(cython.bint, visibility="readonly")
    data = cython.declare(bytearray, visibility="readonly")
    offsets = cython.declare(bytearray, visibility="readonly")
    validity = cython.declare(bytearray, visibility="readonly")
    inner = cython.declare(list, visibility="readonly")
    _most_rows: cython.Py_ssize_t
    _row_bytes: cython.Py_ssize_t
    _data = cython.declare("unsigned char[::1]")
    _ints = cython.declare("int[::1]")
    _longs = cython.declare("long long[::1]")
    _floats = cython.declare("float[::1]")
    _doubles = cython.declare("double[::1]")
    _offsets = cython.declare("int[::1]")
    _validity = cython.declare("unsigned char[::1]")

    def __init__(self, storage: cython.int, rows: cython.Py_ssize_t, inner: list["Column"]) -> None:
        """Create a column with room for this number of rows."""
        self.storage = storage
        self.rows = self.size = 0
        self.has_nulls = False
        self.inner = inner
        self._most_rows = max(rows, 8)
        self._row_bytes = (0, 4, 8, 4, 8, 16, 0, 0, 0)[storage]
        has_offsets: cython.bint = storage in (_OCTETS, _LISTS)
        self.validity = bytearray((self._most_rows + 7) // 8)
        self.offsets = bytearray(4 * (self._most_rows + 1) if has_offsets else 0)
        if storage == _BITS:
            self.data = bytearray((self._most_rows + 7) // 8)
        elif storage == _OCTETS:
            self.data = bytearray(16 * self._most_rows)
        else:
            self.data = bytearray(self._row_bytes * self._most_rows)
        self._see()

    @cython.cfunc
    def _see(self) -> object:
        self._data = self.data
        if self.storage == _INTS:
            self._ints = memoryview(self.data).cast("i")
        elif self.storage == _LONGS or self.storage == _DECIMALS:
            self._longs = memoryview(self.data).cast("q")
        elif self.storage == _FLOATS:
            self._floats = memoryview(self.data).cast("f")
        elif self.storage == _DOUBLES:
            self._doubles = memoryview(self.data).cast("d")
        self._offsets = memoryview(self.offsets).cast("i")
        self._validity = self.validity
        return None

    @cython.cfunc
    def _make_room(self, size: cython.longlong) -> cython.int:
        """Make room for one more row with this number of bytes. Doubles the room, so that little is copied in total."""
        if self.rows + 1 > _MAX_COLUMN or self.size + size > _MAX_COLUMN:
            return _COLUMN_FULL
        # A bytearray cannot grow while a view of it exists.
        self._data = self._offsets = self._validity = None
        self._ints = self._longs = self._floats = self._doubles = None
        if self.rows >= self._most_rows:
            self._most_rows = 2 * self._most_rows
            self.validity += bytes((self._most_rows + 7) // 8 - len(self.validity))
            if len(self.offsets):
                self.offsets += bytes(4 * (self._most_rows + 1) - len(self.offsets))
            if self.storage == _BITS:
                self.data += bytes(len(self.validity) - len(self.data))
            elif self._row_bytes:
                self.data += bytes(self._row_bytes * self._most_rows - len(self.data))
        if self.storage == _OCTETS and size > len(self.data) - self.size:
            self.data += bytes(max(self.size + size, min(2 * len(self.data), _MAX_COLUMN)) - len(self.data))
        self._see()
        return _FINE

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _end_row(self) -> cython.void:
        """End a row whose value, not null, has been written."""
        self._validity[self.rows >> 3] |= 1 << (self.rows & 7)
        self.rows += 1

    @cython.cfunc
    def _append_null(self) -> cython.int:
        row: cython.Py_ssize_t = self.rows
        column: Column
        problem: cython.int
        if row >= self._most_rows:
            problem = self._make_room(0)
            if problem != _FINE:
                return problem
        if self.storage == _STRUCTS:
            for column in self.inner:
                problem = column._append_null()
                if problem != _FINE:
                    return problem
        elif self.storage == _OCTETS or self.storage == _LISTS:
            self._offsets[row + 1] = self._offsets[row]
        self._validity[row >> 3] &= 0xFF ^ (1 << (row & 7))
        self.has_nulls = True
        self.rows = row + 1
        return _FINE

    @cython.cfunc
    def _cut(self, rows: cython.Py_ssize_t) -> object:
        """Drop this row and all later ones."""
        inner_rows: cython.Py_ssize_t = rows
        column: Column
        self.rows = rows
        if self.storage == _OCTETS:
            self.size = self._offsets[rows]
        elif self.storage == _LISTS:
            inner_rows = self._offsets[rows]
        for column in self.inner:
            column._cut(inner_rows)
        return None


@cython.final
@cython.cclass
class Step:
    """`column` is None for a skipped value. `inner` has the fields of a record, the branches of a union, the items of
    an array or map, or the step that reads a default."""

    _op: cython.int
    _number: cython.longlong
    _column: Column | None
    _inner: list["Step"]
    _table = cython.declare("long long[::1]")
    _default = cython.declare("const unsigned char[::1]")

    def __init__(
        self,
        op: cython.int,
        column: Column | None,
        number: cython.longlong,
        inner: list["Step"],
        table: bytes,
        default: bytes,
    ) -> None:
        """`table` contains 64-bit integers."""
        self._op = op
        self._column = column
        self._number = number
        self._inner = inner
        self._table = memoryview(bytearray(table)).cast("q")
        self._default = default


@cython.final
@cython.cclass
class Filler:
    """Reads the rows of a column of bytes into the column `root`, following a tree of steps."""

    root = cython.declare(Column, visibility="readonly")
    bad = cython.declare(dict, visibility="readonly")
    """The problem of each row that could not be read, and the number of bytes for LEFT_OVER."""
    _step: Step
    _data = cython.declare("const unsigned char[::1]")
    _position: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _depth: cython.int
    # Eight bytes for converting a number, in the same way in C and in Python.
    _octets_of_number = cython.declare("unsigned char[::1]")
    _float = cython.declare("float[::1]")
    _double = cython.declare("double[::1]")

    def __init__(self, root: Column, step: Step) -> None:
        scratch = bytearray(8)
        self._octets_of_number = scratch
        self._float = memoryview(scratch).cast("f")
        self._double = memoryview(scratch).cast("d")
        self.root = root
        self.bad = {}
        self._step = step

    @cython.locals(offsets="const int[::1]", rows="const int[::1]")
    def fill(self, data: memoryview, offsets: memoryview, rows: memoryview, prefix: cython.Py_ssize_t) -> None:
        """`rows` are the rows to read, which are not null and have at least `prefix` bytes, which precede the data of
        each. Row n is in `data` between the offsets n and n + 1."""
        index: cython.Py_ssize_t
        row: cython.int
        problem: cython.int
        self._data = data
        limit: cython.Py_ssize_t = len(data)
        last: cython.Py_ssize_t = len(offsets) - 1
        for index in range(len(rows)):
            row = rows[index]
            if row < 0 or row >= last:
                raise ValueError("there is no such row")
            self._position = offsets[row] + prefix
            self._end = offsets[row + 1]
            if self._position < prefix or self._position > self._end or self._end > limit:
                raise ValueError("the offsets are not those of the data, or a row is shorter than its prefix")
            self._depth = 0
            problem = self._read(self._step)
            if problem == _FINE and self._position != self._end:
                problem = _LEFT_OVER
            if problem != _FINE:
                self.bad[index] = (problem, self._end - self._position)
                self.root._cut(index)
                self.root._append_null()
        self._data = None

    @cython.cfunc
    def _read(self, step: Step) -> cython.int:
        """Read one value, and append it to its column. Returns what is wrong with it."""
        op: cython.int = step._op
        if op == _RECORD:
            return self._record(step)
        if op == _UNION:
            return self._union(step)
        if op <= _DOUBLE:
            return self._number(step, op)
        if op <= _FIXED:
            return self._octets(step, op)
        if op == _ENUM:
            return self._enum(step)
        if op in (_DECIMAL_BYTES, _DECIMAL_FIXED):
            return self._decimal(step, op)
        if op in (_ARRAY, _MAP):
            return self._list(step, op == _MAP)
        if op == _DEFAULT:
            return self._by_default(step)
        if op == _REST:
            return self._rest(step)
        return _NOT_IN_READER

    # --- Numbers ------------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _varlong(self) -> cython.longlong:
        """The varlong at the position, which is moved behind it, or set to -1 if there is none."""
        position: cython.Py_ssize_t = self._position
        octet: cython.longlong
        if position < self._end:
            octet = self._data[position]
            if octet < 0x80:  # most varlongs
                self._position = position + 1
                return (octet >> 1) ^ -(octet & 1)
        size: cython.Py_ssize_t = primitives.varlong_size(self._data, position, self._end)
        if size == 0:
            self._position = -1
            return 0
        self._position = position + size
        return primitives.read_varlong(self._data, position, size)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _cut_off(self, start: cython.Py_ssize_t) -> cython.int:
        """What is wrong with the number that should have been read there."""
        self._position = start
        return _ENDS_TOO_EARLY if self._end - start < 10 else _BAD_NUMBER

    @cython.cfunc
    def _number(self, step: Step, op: cython.int) -> cython.int:
        """Read null, a boolean, or a number."""
        column: Column | None = step._column
        start: cython.Py_ssize_t = self._position
        value: cython.longlong = 0
        width: cython.int = 0
        problem: cython.int
        if op == _NULL:
            return _FINE if column is None else column._append_null()
        if op in (_INT, _LONG, _MILLIS):
            value = self._varlong()
            if self._position < 0:
                return self._cut_off(start)
            if op == _INT and not -0x8000_0000 <= value <= 0x7FFF_FFFF:
                return _TOO_LARGE
            if op == _MILLIS:
                if not -_MAX_MILLIS <= value <= _MAX_MILLIS:
                    return _TOO_LARGE
                value *= 1000
        else:
            width = 1 if op == _BOOLEAN else 4 if op == _FLOAT else 8
            if self._end - start < width:
                return _ENDS_TOO_EARLY
            self._position = start + width
        if column is None:
            return _FINE
        if column.rows >= column._most_rows:
            problem = column._make_room(0)
            if problem != _FINE:
                return problem
        if column.storage == _LONGS:
            column._longs[column.rows] = value
        elif column.storage == _INTS:
            column._ints[column.rows] = value
        elif op == _BOOLEAN:
            if self._data[start]:
                column._data[column.rows >> 3] |= 1 << (column.rows & 7)
            else:
                column._data[column.rows >> 3] &= 0xFF ^ (1 << (column.rows & 7))
        elif op == _DOUBLE or (op == _FLOAT and column.storage == _FLOATS):
            primitives.copy_bytes(column._data, width * column.rows, self._data, start, width)
        else:
            self._put_promoted(column, op, start, value)
        column._end_row()
        return _FINE

    @cython.cfunc
    @cython.exceptval(check=False)
    def _put_promoted(
        self, column: Column, op: cython.int, start: cython.Py_ssize_t, value: cython.longlong
    ) -> cython.void:
        """Append an integer as a float or a double, or a float as a double."""
        if op == _FLOAT:
            primitives.copy_bytes(self._octets_of_number, 0, self._data, start, 4)
            column._doubles[column.rows] = self._float[0]
            return
        self._double[0] = value
        if column.storage == _DOUBLES:
            column._doubles[column.rows] = self._double[0]
        else:
            column._floats[column.rows] = self._double[0]

    # --- Bytes --------------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _length(self, is_fixed: cython.bint, size: cython.longlong) -> cython.longlong:
        """The length of the bytes at the position; a negated problem if there are not as many."""
        start: cython.Py_ssize_t = self._position
        if not is_fixed:
            size = self._varlong()
            if self._position < 0:
                return -self._cut_off(start)
            if size < 0:
                return -_NEGATIVE_LENGTH
        if size > self._end - self._position:
            return -_ENDS_TOO_EARLY
        return size

    @cython.cfunc
    def _octets(self, step: Step, op: cython.int) -> cython.int:
        size: cython.longlong = self._length(op == _FIXED, step._number)
        if size < 0:
            return -size
        column: Column | None = step._column
        start: cython.Py_ssize_t = self._position
        self._position = start + size
        if column is None:
            return _FINE
        if op == _STRING and not self._is_utf8(start, self._position):
            return _NOT_UTF8
        return self._append_octets(column, start, size)

    @cython.cfunc
    def _rest(self, step: Step) -> cython.int:
        start: cython.Py_ssize_t = self._position
        column: Column | None = step._column
        self._position = self._end
        return _FINE if column is None else self._append_octets(column, start, self._end - start)

    @cython.cfunc
    @cython.inline
    def _append_octets(self, column: Column, start: cython.Py_ssize_t, size: cython.longlong) -> cython.int:
        problem: cython.int
        if column.rows >= column._most_rows or size > len(column._data) - column.size:
            problem = column._make_room(size)
            if problem != _FINE:
                return problem
        primitives.copy_bytes(column._data, column.size, self._data, start, size)
        column.size += size
        column._offsets[column.rows + 1] = column.size
        column._end_row()
        return _FINE

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_utf8(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Unicode's definition: no overlong forms, no surrogates, nothing above U+10FFFF."""
        position: cython.Py_ssize_t = start
        while position < end and self._data[position] < 0x80:
            position += 1
        return position == end or self._is_mixed_utf8(position, end)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_mixed_utf8(self, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        first: cython.int
        second: cython.int
        more: cython.int
        index: cython.int
        while position < end:
            first = self._data[position]
            position += 1
            if first < 0x80:
                continue
            if first < 0xC2 or first > 0xF4:
                return False
            more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            if more > end - position:
                return False
            second = self._data[position]
            if (
                (first == 0xE0 and second < 0xA0)
                or (first == 0xED and second > 0x9F)
                or (first == 0xF0 and second < 0x90)
                or (first == 0xF4 and second > 0x8F)
            ):
                return False
            for index in range(more):
                if self._data[position + index] & 0xC0 != 0x80:
                    return False
            position += more
        return True

    @cython.cfunc
    def _enum(self, step: Step) -> cython.int:
        start: cython.Py_ssize_t = self._position
        symbol: cython.longlong = self._varlong()
        column: Column | None = step._column
        problem: cython.int
        if self._position < 0:
            return self._cut_off(start)
        if symbol < 0 or symbol >= len(step._table):
            return _NO_SUCH_SYMBOL
        if column is None:
            return _FINE
        if step._table[symbol] < 0:
            return _NOT_IN_READER
        if column.rows >= column._most_rows:
            problem = column._make_room(0)
            if problem != _FINE:
                return problem
        column._ints[column.rows] = step._table[symbol]
        column._end_row()
        return _FINE

    @cython.cfunc
    def _decimal(self, step: Step, op: cython.int) -> cython.int:
        """Read two's complement of any length, the most significant byte first."""
        size: cython.longlong = self._length(op == _DECIMAL_FIXED, step._number)
        if size < 0:
            return -size
        column: Column | None = step._column
        start: cython.Py_ssize_t = self._position
        self._position = start + size
        if column is None:
            return _FINE
        mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
        fill: cython.ulonglong = mask if size > 0 and self._data[start] >= 0x80 else 0
        high: cython.ulonglong = fill
        low: cython.ulonglong = fill
        octet: cython.ulonglong
        index: cython.Py_ssize_t
        for index in range(size):
            octet = self._data[start + index]
            if size - index > 16:
                if octet != fill & 0xFF:
                    return _TOO_LARGE
                continue
            high = ((high << 8) & mask) | (low >> 56)
            low = ((low << 8) & mask) | octet
        if size > 16 and (high >> 63) != (fill & 1):
            return _TOO_LARGE
        if not self._has_precision(step, high, low):
            return _TOO_LARGE
        problem: cython.int
        if column.rows >= column._most_rows:
            problem = column._make_room(0)
            if problem != _FINE:
                return problem
        column._longs[2 * column.rows] = primitives.wrap_int64(low)
        column._longs[2 * column.rows + 1] = primitives.wrap_int64(high)
        column._end_row()
        return _FINE

    @cython.cfunc
    @cython.exceptval(check=False)
    def _has_precision(self, step: Step, high: cython.ulonglong, low: cython.ulonglong) -> cython.bint:
        """Whether the absolute value is below the limit in the table, 10 to the power of the precision."""
        mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
        bound_high: cython.ulonglong = step._table[0] & mask
        bound_low: cython.ulonglong = step._table[1] & mask
        if high >> 63:
            low = (mask ^ low) + 1 if low else 0
            high = ((mask ^ high) + (0 if low else 1)) & mask
        return high < bound_high or (high == bound_high and low < bound_low)

    # --- Types with inner values --------------------------------------------------------------------------------------

    @cython.cfunc
    def _record(self, step: Step) -> cython.int:
        column: Column | None = step._column
        field: Step
        problem: cython.int
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            return _TOO_DEEP
        for field in step._inner:
            problem = self._read(field)
            if problem != _FINE:
                return problem
        self._depth -= 1
        if column is not None:
            if column.rows >= column._most_rows:
                problem = column._make_room(0)
                if problem != _FINE:
                    return problem
            column._end_row()
        return _FINE

    @cython.cfunc
    def _union(self, step: Step) -> cython.int:
        start: cython.Py_ssize_t = self._position
        branch: cython.longlong = self._varlong()
        if self._position < 0:
            return self._cut_off(start)
        if branch < 0 or branch >= len(step._inner):
            return _NO_SUCH_BRANCH
        chosen: Step = step._inner[branch]
        return self._read(chosen)

    @cython.cfunc
    def _list(self, step: Step, is_map: cython.bint) -> cython.int:
        """Read blocks of items, each with its count; a negative count is followed by the block's size. Every item has
        at least one byte, so a count is never larger than the remaining bytes."""
        column: Column | None = step._column
        item: Step = step._inner[0]
        keys: Column | None = None if column is None or not is_map else column.inner[0]
        start: cython.Py_ssize_t
        count: cython.longlong
        left: cython.longlong
        items: cython.longlong = 0
        size: cython.longlong
        problem: cython.int
        if column is not None:
            items = column._offsets[column.rows]
        while True:
            start = self._position
            count = self._varlong()
            if self._position < 0:
                return self._cut_off(start)
            if count == 0:
                break
            if count < 0:
                start = self._position
                size = self._varlong()
                if self._position < 0:
                    return self._cut_off(start)
                if size < 0:
                    return _NEGATIVE_LENGTH
                if size > self._end - self._position:
                    return _ENDS_TOO_EARLY
                if column is None:
                    self._position += size
                    continue
            left = self._end - self._position
            if count > left or count < -left:  # -count may overflow
                return _ENDS_TOO_EARLY
            if count < 0:
                count = -count
            items += count
            while count > 0:
                if is_map:
                    problem = self._key(keys)
                    if problem != _FINE:
                        return problem
                problem = self._read(item)
                if problem != _FINE:
                    return problem
                count -= 1
        if column is None:
            return _FINE
        if items > _MAX_COLUMN:
            return _COLUMN_FULL
        if column.rows >= column._most_rows:
            problem = column._make_room(0)
            if problem != _FINE:
                return problem
        column._offsets[column.rows + 1] = items
        column._end_row()
        return _FINE

    @cython.cfunc
    def _key(self, column: Column | None) -> cython.int:
        start: cython.Py_ssize_t = self._position
        size: cython.longlong = self._varlong()
        if self._position < 0:
            return self._cut_off(start)
        if size < 0:
            return _NEGATIVE_LENGTH
        if size > self._end - self._position:
            return _ENDS_TOO_EARLY
        start = self._position
        self._position = start + size
        if column is None:
            return _FINE
        if not self._is_utf8(start, self._position):
            return _NOT_UTF8
        return self._append_octets(column, start, size)

    @cython.cfunc
    @cython.locals(data="const unsigned char[::1]")
    def _by_default(self, step: Step) -> cython.int:
        """Read the default's bytes instead: the field is not in the writer's schema."""
        data = self._data
        position: cython.Py_ssize_t = self._position
        end: cython.Py_ssize_t = self._end
        self._data = step._default
        self._position = 0
        self._end = len(self._data)
        inner: Step = step._inner[0]
        problem: cython.int = self._read(inner)
        self._data = data
        self._position = position
        self._end = end
        return problem
