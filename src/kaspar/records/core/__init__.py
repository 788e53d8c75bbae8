"""The compiled part of the records package. Only this module chooses between its compiled and interpreted form.

Import the modules from here (`from kaspar.records.core import checking`), never their contents by path.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load

if TYPE_CHECKING:
    from kaspar.records.core import (
        batch_scanning,
        batch_selection,
        building,
        checking,
        column_filling,
        column_writing,
        judging,
        key_collecting,
        key_table,
        reading,
        rebuilding,
        row_grouping,
    )
else:
    checking = load("kaspar.records.core.checking")
    reading = load("kaspar.records.core.reading")
    building = load("kaspar.records.core.building")
    batch_selection = load("kaspar.records.core.batch_selection")
    column_filling = load("kaspar.records.core.column_filling")
    column_writing = load("kaspar.records.core.column_writing")
    row_grouping = load("kaspar.records.core.row_grouping")
    key_table = load("kaspar.records.core.key_table")
    key_collecting = load("kaspar.records.core.key_collecting")
    judging = load("kaspar.records.core.judging")
    rebuilding = load("kaspar.records.core.rebuilding")
    batch_scanning = load("kaspar.records.core.batch_scanning")

__all__ = [
    "batch_scanning",
    "batch_selection",
    "building",
    "checking",
    "column_filling",
    "column_writing",
    "judging",
    "key_collecting",
    "key_table",
    "reading",
    "rebuilding",
    "row_grouping",
]
