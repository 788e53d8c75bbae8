"""Runs the plan of avro_program.py over a column of records: Arrow's buffers in, an Arrow array out."""

import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kaspar.serialization.core import avro_filling
from kaspar.serialization.core import avro_steps as steps
from kaspar.spark.formats.avro_program import ColumnPlan, Program, StepPlan

Rows = npt.NDArray[np.int32]

_OUT_OF_RANGE = "it has a number that its type cannot hold"


def read_rows(
    program: Program, column: pa.BinaryArray, rows: Rows, arrow_type: pa.DataType, *, prefix: int = 0
) -> tuple[pa.Array, Mapping[int, str]]:
    """Read these rows of the column. Returns their values, of the type of the program's reader, and the reasons why
    some of them could not be read and are null, by their position in `rows`. No row may be null, or shorter than its
    prefix, which is not part of the record."""
    _, offsets, data = column.buffers()
    filler = _filler(program, len(rows))
    filler.fill(
        memoryview(data or b"").cast("B"),
        memoryview(offsets).cast("B")[4 * column.offset : 4 * (column.offset + len(column) + 1)].cast("i"),
        np.ascontiguousarray(rows).data,
        prefix,
    )
    bad = {row: _reason(problem, left) for row, (problem, left) in filler.bad.items()}
    return _array(filler.root, program.column, arrow_type), bad


def _reason(problem: int, left: int) -> str:
    if problem == steps.TOO_LARGE:
        return _OUT_OF_RANGE
    return f"it is not Avro data of the given schema ({steps.PROBLEMS[problem].format(left=left)})"


def _filler(program: Program, rows: int) -> avro_filling.Filler:
    columns: dict[ColumnPlan, avro_filling.Column] = {}
    root = _column(program.column, rows, columns)
    return avro_filling.Filler(root, _step(program.step, columns, {}))


def _column(plan: ColumnPlan, rows: int, columns: dict[ColumnPlan, avro_filling.Column]) -> avro_filling.Column:
    inner = [_column(each, rows, columns) for each in plan.inner]
    columns[plan] = avro_filling.Column(plan.storage, rows, inner)
    return columns[plan]


def _step(
    plan: StepPlan,
    columns: Mapping[ColumnPlan, avro_filling.Column],
    made: dict[StepPlan, avro_filling.Step],
) -> avro_filling.Step:
    if plan not in made:
        inner: list[avro_filling.Step] = []
        made[plan] = avro_filling.Step(
            plan.op,
            None if plan.column is None else columns[plan.column],
            plan.number,
            inner,
            struct.pack(f"{len(plan.table)}q", *plan.table),
            plan.default,
        )
        inner.extend(_step(each, columns, made) for each in plan.inner)  # a recursive record contains its own step
    return made[plan]


def _array(column: avro_filling.Column, plan: ColumnPlan, arrow_type: pa.DataType) -> pa.Array:
    valid = pa.py_buffer(column.validity) if column.has_nulls else None
    if plan.symbols:
        numbers = pa.Array.from_buffers(pa.int32(), column.rows, [valid, pa.py_buffer(column.data)])
        return pa.DictionaryArray.from_arrays(numbers, pa.array(plan.symbols)).cast(arrow_type)
    buffers = [valid]
    if plan.storage in (steps.OCTETS, steps.LISTS):
        buffers.append(pa.py_buffer(column.offsets))
    if plan.storage not in (steps.LISTS, steps.STRUCTS):
        buffers.append(pa.py_buffer(column.data))
    return pa.Array.from_buffers(arrow_type, column.rows, buffers, children=_inner(column, plan, arrow_type))


def _inner(column: avro_filling.Column, plan: ColumnPlan, arrow_type: pa.DataType) -> list[pa.Array]:
    if plan.storage == steps.LISTS and len(plan.inner) > 1:
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        arrays = _arrays(column, plan, entries)
        return [pa.Array.from_buffers(entries, len(arrays[0]), [None], children=arrays)]
    return _arrays(column, plan, arrow_type)


def _arrays(column: avro_filling.Column, plan: ColumnPlan, arrow_type: pa.DataType) -> list[pa.Array]:
    return [
        _array(inner, each, arrow_type.field(number).type)
        for number, (inner, each) in enumerate(zip(column.inner, plan.inner, strict=True))
    ]
