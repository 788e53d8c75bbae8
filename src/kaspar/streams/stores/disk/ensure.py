"""Brings the state of a partition to a version. A task always gets its state in this way.

If LMDB has the version, it is used. If delta files lead from LMDB's version to the wanted one, they are applied.
Otherwise the changelogs are read: from LMDB's version on, or from the beginning if it is empty, damaged or ahead.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kaspar.base.errors import invariant
from kaspar.base.log import get_log
from kaspar.streams.stores.changelog import ChangelogReader
from kaspar.streams.stores.disk.changes import apply_delta, catch_up
from kaspar.streams.stores.disk.deltas import delta_chain, read_delta, remove_old_deltas
from kaspar.streams.stores.disk.environment import Environment, StateDamaged
from kaspar.streams.stores.disk.opened import open_environment, partition_lock, read_state
from kaspar.streams.stores.disk.partition_state import PartitionState
from kaspar.streams.stores.spec import StoreSpec

_log = get_log(__name__)


def ensure(
    directory: Path,
    partition: int,
    specs: Iterable[StoreSpec],
    wanted: Mapping[str, int],
    reader: ChangelogReader,
    *,
    or_later: bool = False,
) -> PartitionState:
    """The state of the partition in `directory`, at exactly the wanted version: the changelog end of each store, 0 if
    it is missing. For a store without a changelog, the version is any number that increases with every batch, such as
    the batch id; if it is missing, any version of that store is accepted.

    With `or_later`, a later version is accepted too, for callers that only read: a task may just have written it.

    Several processes may call this concurrently. The caller closes the state.
    """
    specs = tuple(specs)
    wanted = {**{spec.name: 0 for spec in specs if spec.is_logged}, **wanted}
    directory = directory.resolve()  # LMDB must not open it twice under different names
    state = _state_at(directory, wanted, specs, or_later=or_later)
    if state is not None:
        return state
    with partition_lock(directory):
        try:
            return _brought_to(open_environment(directory), partition, specs, wanted, reader, or_later=or_later)
        except StateDamaged as damage:
            _log.warning("rebuilding the state of a partition", directory=directory, reason=damage)
            return _brought_to(open_environment(directory), partition, specs, wanted, reader, or_later=or_later)


def _state_at(
    directory: Path, wanted: Mapping[str, int], specs: tuple[StoreSpec, ...], *, or_later: bool
) -> PartitionState | None:
    """The wanted version, if this process has it open."""
    try:
        state = read_state(directory)
    except StateDamaged:
        return None
    if state is not None and not state.is_at(wanted, specs, or_later=or_later):
        state.close()
        return None
    return state


def _brought_to(
    environment: Environment,
    partition: int,
    specs: tuple[StoreSpec, ...],
    wanted: Mapping[str, int],
    reader: ChangelogReader,
    *,
    or_later: bool,
) -> PartitionState:
    state = PartitionState(environment)
    if state.is_at(wanted, specs, or_later=or_later):
        return state
    state.close()
    # A store without a changelog and without a wanted version keeps its version, which is part of the names of deltas.
    wanted = {**{spec.name: state.ends.get(spec.name, 0) for spec in specs if not spec.is_logged}, **wanted}
    _apply_deltas(environment, specs, wanted)
    if not _is_at(environment, wanted, specs):
        catch_up(environment, partition, specs, wanted, reader)
    remove_old_deltas(environment.directory, wanted)
    state = PartitionState(environment)
    invariant(state.is_at(wanted, specs), f"the state in {environment.directory} is at {state.ends}, not at {wanted}")
    return state


def _is_at(environment: Environment, wanted: Mapping[str, int], specs: tuple[StoreSpec, ...]) -> bool:
    with PartitionState(environment) as state:
        return state.is_at(wanted, specs)


def _apply_deltas(environment: Environment, specs: tuple[StoreSpec, ...], wanted: Mapping[str, int]) -> None:
    with PartitionState(environment) as state:
        present = {name: state.ends.get(name, 0) for name in wanted}
        if not state.is_at(present, specs):  # a store has another layout
            return
    for file in delta_chain(environment.directory, present, wanted) or ():
        delta = read_delta(file)
        if delta is None or not apply_delta(environment, delta, specs):
            return
