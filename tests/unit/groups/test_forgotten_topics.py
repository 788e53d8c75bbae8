"""What was committed for a topic goes when the topic goes: a slice at a time, and nothing of its successor's."""

import uuid
from collections.abc import Iterable

from kaspar.base.ids import ZERO_UUID, ProducerIdAndEpoch
from kaspar.coordination import StoredRecord
from kaspar.groups.deleted_topics import DELETE_OFFSETS
from kaspar.groups.offsets.committed import PIECE
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue
from kaspar.groups.rounds import MAX_DELETED_PER_SLICE, MAX_VISITED_PER_SLICE
from kaspar.groups.topics import TopicView
from tests.unit.groups.shell import GROUP, Shell

OLD_ID = uuid.UUID(int=1)
NEW_ID = uuid.UUID(int=2)
OLD_DELETED = {"recreated": {OLD_ID}}


class Topics(dict[str, uuid.UUID]):
    """Topics of a cluster, by name, with their ids."""

    def topic(self, name: str) -> TopicView | None:
        return TopicView(name, self[name], 1) if name in self else None

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, found in self.items() if found == topic_id), None)

    def names(self) -> Iterable[str]:
        return self.keys()


def shell_with(committed: dict[tuple[str, int], uuid.UUID], topics: Topics) -> Shell:
    """A shard of which one group has committed that, for the topic of that id."""
    shell = Shell()
    shell.carry_out(shell.shard.topics_changed(topics, tuple(topics), shell.now))
    for (topic, partition), topic_id in committed.items():
        value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=topic_id)
        shell.append(StoredRecord(OffsetCommitKey(group=GROUP, topic=topic, partition=partition), value))
    return shell


def committed(shell: Shell) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partition, _ in shell.shard.offsets.committed(GROUP)}


def test_offsets_of_a_deleted_topic_are_forgotten() -> None:
    shell = shell_with({("gone", 0): OLD_ID, ("stays", 0): OLD_ID}, Topics(gone=OLD_ID, stays=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(stays=OLD_ID), ("gone",), shell.now, deleted={"gone": {OLD_ID}}))
    shell.advance(0)
    assert committed(shell) == {("stays", 0)}
    shell.crash()
    assert committed(shell) == {("stays", 0)}


def test_offsets_of_a_topic_that_is_only_missing_stay() -> None:
    shell = shell_with({("missing", 0): OLD_ID}, Topics(missing=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("missing",), shell.now))
    shell.advance(0)
    assert committed(shell) == {("missing", 0)}


def test_a_deletion_that_is_said_again_takes_nothing_of_a_topic_that_has_the_name_now() -> None:
    """An image that lacks the new topic, and says the deletion of the old one once more, is only incomplete."""
    recreated = {("recreated", 0): NEW_ID, ("recreated", 1): ZERO_UUID}
    shell = shell_with(recreated, Topics(recreated=NEW_ID))
    for _ in range(2):  # the second time it does not know the new one any more
        shell.carry_out(shell.shard.topics_changed(Topics(), ("recreated",), shell.now, deleted=OLD_DELETED))
        shell.advance(0)
    assert committed(shell) == recreated.keys()


def test_a_deletion_that_is_said_of_a_topic_which_the_image_lacked_before_takes_its_offsets() -> None:
    shell = shell_with({("gone", 0): OLD_ID, ("gone", 1): ZERO_UUID}, Topics(gone=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("gone",), shell.now))
    shell.carry_out(shell.shard.topics_changed(Topics(), (), shell.now, deleted={"gone": {OLD_ID}}))
    shell.advance(0)
    assert committed(shell) == {("gone", 1)}, "whose the offset without an id was cannot be known any more"


def test_offsets_of_a_topic_that_was_recreated_are_dropped_except_new_ones() -> None:
    shell = shell_with({("recreated", 0): OLD_ID, ("recreated", 1): NEW_ID}, Topics(recreated=OLD_ID))
    shell.carry_out(
        shell.shard.topics_changed(Topics(recreated=NEW_ID), ("recreated",), shell.now, deleted=OLD_DELETED)
    )
    shell.advance(0)
    assert committed(shell) == {("recreated", 1)}


def test_offsets_of_a_topic_that_only_grew_stay() -> None:
    shell = shell_with({("grown", 0): uuid.UUID(int=0)}, Topics(grown=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(grown=OLD_ID), ("grown",), shell.now))
    shell.advance(0)
    assert committed(shell) == {("grown", 0)}


def test_many_offsets_are_forgotten_a_slice_at_a_time() -> None:
    count = 2 * MAX_DELETED_PER_SLICE + 1
    shell = shell_with({("gone", partition): OLD_ID for partition in range(count)}, Topics(gone=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("gone",), shell.now, deleted={"gone": {OLD_ID}}))
    slices = forget(shell)
    assert sum(slices) == count
    assert all(number < MAX_DELETED_PER_SLICE + PIECE for number in slices)
    assert not committed(shell)


def test_groups_that_have_nothing_to_forget_are_looked_at_in_slices() -> None:
    shell = shell_with({("gone", 0): OLD_ID}, Topics(gone=OLD_ID))
    for number in range(2 * MAX_VISITED_PER_SLICE):
        key = OffsetCommitKey(group=f"group-{number}", topic="stays", partition=0)
        shell.append(StoredRecord(key, OffsetCommitValue(offset=5, metadata="", commit_timestamp=1)))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("gone",), shell.now, deleted={"gone": {OLD_ID}}))
    slices = forget(shell)
    assert len(slices) >= 3
    assert sum(slices) == 1
    assert shell.shard.offsets.count == 2 * MAX_VISITED_PER_SLICE


def test_a_topic_that_goes_while_another_is_being_forgotten_is_forgotten_too() -> None:
    places = {(topic, partition): OLD_ID for topic in ("one", "two") for partition in range(MAX_DELETED_PER_SLICE + 1)}
    shell = shell_with(places, Topics(one=OLD_ID, two=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(two=OLD_ID), ("one",), shell.now, deleted={"one": {OLD_ID}}))
    shell.carry_out(shell.shard.timer_fired(DELETE_OFFSETS, shell.now))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("two",), shell.now, deleted={"two": {OLD_ID}}))
    shell.advance(0)
    assert not committed(shell)


def test_what_was_committed_for_a_new_topic_of_the_name_stays_although_the_old_one_is_still_being_forgotten() -> None:
    shell = shell_with({("recreated", 0): OLD_ID}, Topics(recreated=OLD_ID))
    shell.carry_out(shell.shard.topics_changed(Topics(), ("recreated",), shell.now, deleted=OLD_DELETED))
    shell.carry_out(shell.shard.topics_changed(Topics(recreated=NEW_ID), ("recreated",), shell.now))
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1, topic_id=NEW_ID)
    shell.append(StoredRecord(OffsetCommitKey(group=GROUP, topic="recreated", partition=1), value))
    shell.advance(0)
    assert committed(shell) == {("recreated", 1)}


def test_what_an_open_transaction_has_committed_for_a_topic_that_is_gone_goes_too() -> None:
    shell = shell_with({}, Topics(gone=OLD_ID))
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=1)
    producer = ProducerIdAndEpoch(7, 0)
    shell.shard.replay(StoredRecord(OffsetCommitKey(group=GROUP, topic="gone", partition=0), value), producer)
    shell.carry_out(shell.shard.topics_changed(Topics(), ("gone",), shell.now, deleted={"gone": {OLD_ID}}))
    shell.advance(0)
    shell.shard.replay_marker(producer, committed=True)
    assert not committed(shell)


def forget(shell: Shell) -> list[int]:
    """All that is to be forgotten: how many, slice by slice."""
    slices = []
    while DELETE_OFFSETS in shell.timers:
        del shell.timers[DELETE_OFFSETS]
        decision = shell.shard.timer_fired(DELETE_OFFSETS, shell.now)
        slices.append(len(decision.records))
        shell.carry_out(decision)
    return slices
