"""The rows of columns, sorted by the groups (topics, partitions) that they belong to. Part of the compiled core."""

import cython

IS_COMPILED: bool = cython.compiled


@cython.locals(group_of="const int[::1]", row_of="const int[::1]", start="int[::1]", out="int[::1]")
def group_rows(
    groups: memoryview, group_count: cython.Py_ssize_t, rows: memoryview, first: cython.Py_ssize_t
) -> tuple[memoryview, memoryview]:
    """Sort the rows `rows[first:first + len(groups)]` by group (all int32), keeping their order within each group. Also
    returns where each group starts, followed by where the last one ends."""
    group_of = groups
    row_of = rows
    count: cython.Py_ssize_t = len(groups)
    if first < 0 or first + count > len(rows):
        raise ValueError(f"{count} groups from {first} on are too many for {len(rows)} rows")
    grouped = memoryview(bytearray(4 * count)).cast("i")
    starts = memoryview(bytearray(4 * (group_count + 2))).cast("i")
    out = grouped
    start = starts
    index: cython.Py_ssize_t
    group: cython.Py_ssize_t
    place: cython.Py_ssize_t
    is_sound: cython.bint = True
    with cython.nogil:
        # start[g + 2] counts the rows of g; summed up, start[g + 1] is where the next row of g goes, and in the end
        # where g + 1 starts.
        for index in range(count):
            group = group_of[index]
            if group < 0 or group >= group_count:
                is_sound = False
            else:
                start[group + 2] += 1
        for group in range(1, group_count + 2):
            start[group] += start[group - 1]
        if is_sound:
            for index in range(count):
                group = group_of[index]
                place = start[group + 1]
                out[place] = row_of[first + index]
                start[group + 1] = place + 1
    if not is_sound:
        raise ValueError(f"a row belongs to none of {group_count} groups")
    return grouped, starts[: group_count + 1]


@cython.locals(out="int[::1]")
def all_rows(count: cython.Py_ssize_t) -> memoryview:
    """0, 1, 2, ... (int32): every row, in order."""
    rows = memoryview(bytearray(4 * count)).cast("i")
    out = rows
    index: cython.int
    for index in range(count):
        out[index] = index
    return rows
