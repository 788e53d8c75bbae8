"""Where a program goes on that has no checkpoint."""

from kaspar.base.ids import TopicPartition
from kaspar.streams.running.predecessors import Note, furthest

LINES = TopicPartition("lines", 0)
OTHERS = TopicPartition("others", 1)


def test_a_note_is_read_as_it_was_written() -> None:
    note = Note("run-1", {LINES: 7, OTHERS: 0})
    assert Note.decode(note.encode()) == note


def test_it_goes_on_behind_the_last_published_batch() -> None:
    notes = [Note("run-1", {LINES: 7, OTHERS: 3})]
    assert furthest({LINES: 5, OTHERS: 4}, notes, "run-1", ()) == {LINES: 7, OTHERS: 4}
    assert furthest({}, notes, "run-1", ()) == {LINES: 7, OTHERS: 3}


def test_a_reset_counts_more_than_what_was_published_before() -> None:
    notes = [Note("run-1", {LINES: 7})]
    assert furthest({LINES: 0}, notes, None, ()) == {LINES: 0}
    assert furthest({LINES: 0}, notes, "run-2", ()) == {LINES: 0}


def test_offsets_of_a_recreated_topic_are_forgotten() -> None:
    assert furthest({LINES: 5}, [Note("run-1", {OTHERS: 3})], "run-1", {"others"}) == {LINES: 5}
