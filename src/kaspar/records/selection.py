"""Which batches of a fetch response a consumer sees: no control batches, no aborted transactions."""

from kaspar.records.core import batch_selection

__all__ = ["BatchSelector", "offset_behind"]

BatchSelector = batch_selection.BatchSelector
offset_behind = batch_selection.offset_behind
