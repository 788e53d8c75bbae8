"""Permanent deletion of versions.

Only a tombstone is left of a version, and compaction removes that too. So that its id is not reused for another schema,
the highest id of a context is recorded when the schema with that id is deleted.
"""

from collections.abc import Sequence

from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import context_of
from kaspar.registry.records import highest_ids_record, schema_tombstone
from kaspar.registry.state import State, StoredVersion


def purged(state: State, versions: Sequence[StoredVersion]) -> tuple[LogRecord, ...]:
    tombstones = (schema_tombstone(stored.subject, stored.version) for stored in versions)
    return (*tombstones, *highest_ids_kept(state, versions))


def highest_ids_kept(state: State, removed: Sequence[StoredVersion]) -> tuple[LogRecord, ...]:
    """The record of the highest ids; none if no removed version has the highest id of its context."""
    highest = {
        context: stored.id
        for stored in removed
        if stored.id == state.index(context := context_of(stored.subject)).max_id
    }
    if not highest:
        return ()
    recorded = state.recorded_max_ids().items()
    still_highest = {context: max_id for context, max_id in recorded if state.index(context).max_id == max_id}
    return (highest_ids_record({**still_highest, **highest}),)
