"""The checker of histories finds each violation that is planted in a sound history, and nothing in a sound one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.history import (
    RULES,
    Acknowledged,
    CommitAcknowledged,
    CommitAsked,
    EndAsked,
    Ended,
    Event,
    Journal,
    Killed,
    Lost,
    OffsetFetched,
    Owns,
    Paused,
    Read,
    check,
    read_journals,
)
from tests.unit.chaos.story import (
    GROUP,
    OFFSETS,
    ONE,
    SOURCE,
    TARGET,
    TWO,
    Batch,
    Story,
    commit_batch,
    derived,
    generation_batch,
    input_value,
    member_batch,
    owns,
)

Plant = Callable[[Story], None]


def _commit_goes_back(story: Story) -> None:
    story.logs[OFFSETS].append(commit_batch(3))


def _commit_is_taken_away(story: Story) -> None:
    story.logs[OFFSETS].append(commit_batch(None))


def _aborted_record_is_read(story: Story) -> None:
    story.remove(Read, "reader")
    story.add(Read(actor="reader", at_ns=90, topic="out", partition=0, offset=3, value=derived("one", 1, 2)))


def _open_record_is_read(story: Story) -> None:
    story.logs[TARGET].append(Batch([derived("two", 1, 4)], producer_id=TWO))
    story.add(Read(actor="other", at_ns=90, topic="out", partition=0, offset=8, value=derived("two", 1, 4)))


def _record_that_is_not_there_is_read(story: Story) -> None:
    story.add(Read(actor="other", at_ns=90, topic="out", partition=0, offset=6, value=derived("two", 0, 2)))


def _record_is_read_before_its_commit(story: Story) -> None:
    story.add(Read(actor="early", at_ns=59, topic="out", partition=0, offset=5, value=derived("two", 0, 2)))


def _committed_record_is_skipped(story: Story) -> None:
    story.events = [each for each in story.events if not (isinstance(each, Read) and each.offset == 1)]


def _record_is_read_twice(story: Story) -> None:
    story.add(Read(actor="reader", at_ns=90, topic="out", partition=0, offset=6, value=derived("two", 0, 3)))


def _record_is_made_twice(story: Story) -> None:
    """What was aborted is committed, too: a zombie that nobody fenced."""
    story.logs[TARGET][3] = Batch(producer_id=ONE, marker=True)


def _record_is_lost(story: Story) -> None:
    """The offsets of a transaction are committed, and its records are not."""
    story.logs[TARGET][4] = Batch([derived("two", 0, 3)], producer_id=TWO)


def _records_without_their_offsets(story: Story) -> None:
    story.logs[OFFSETS][5] = Batch(producer_id=TWO, marker=False)


def _made_of_nothing(story: Story) -> None:
    story.logs[TARGET][4] = Batch([derived("two", 0, 2, value=input_value(7)), derived("two", 0, 3)], producer_id=TWO)


def _group_stops_early(story: Story) -> None:
    story.logs[SOURCE].append(Batch([input_value(4)]))


def _transaction_is_torn(story: Story) -> None:
    """One transaction, and a marker of either kind in its two partitions."""
    story.logs["out", 1] = [Batch([derived("two", 0, 0)], producer_id=TWO), Batch(producer_id=TWO, marker=False)]


def _reported_committed_and_is_aborted(story: Story) -> None:
    story.logs[TARGET][5] = Batch(producer_id=TWO, marker=False)


def _committed_and_nobody_asked(story: Story) -> None:
    story.remove(EndAsked, "two")


def _transaction_never_ends(story: Story) -> None:
    story.logs["other", 0] = [Batch(["value"], producer_id=TWO)]


def _offsets_have_a_gap(story: Story) -> None:
    story.logs["other", 0] = [Batch(["value"]), Batch(["value"], skip=1)]


def _acknowledged_record_is_gone(story: Story) -> None:
    story.add(Acknowledged(actor="feeder", at_ns=2, topic="in", partition=0, offset=4, value=input_value(4)))


def _record_acknowledged_without_an_offset_is_gone(story: Story) -> None:
    story.add(Acknowledged(actor="feeder", at_ns=2, topic="in", partition=0, offset=None, value=input_value(4)))


def _offset_names_two_records(story: Story) -> None:
    story.add(Acknowledged(actor="feeder", at_ns=2, topic="in", partition=0, offset=3, value=input_value(9)))


def _input_is_out_of_order(story: Story) -> None:
    story.logs[SOURCE] = [Batch([input_value(1), input_value(0)]), *story.logs[SOURCE][1:]]


def _input_is_doubled(story: Story) -> None:
    """An idempotent producer's batch that was sent again and taken again."""
    story.logs[SOURCE].append(Batch([input_value(2), input_value(3)]))


def _output_is_out_of_order(story: Story) -> None:
    story.logs[TARGET][4] = Batch([derived("two", 0, 3), derived("two", 0, 2)], producer_id=TWO)


def _two_owners_in_an_epoch(story: Story) -> None:
    story.events = [each for each in story.events if not (isinstance(each, Owns) and each.actor == "two")]
    story.add(owns("two", 50, epoch=1, partitions=(("in", 0),)))


def _two_owners_at_a_time(story: Story) -> None:
    """In another generation, but before the first has given it up."""
    story.add(
        owns("three", 35, epoch=3, partitions=(("in", 0),)),
        owns("three", 45, epoch=3, partitions=()),
    )


def _second_commit_is_overtaken(story: Story) -> None:
    story.logs[OFFSETS][2:4] = [commit_batch(1)]


def _commit_of_a_transaction_counts_from_its_marker(story: Story) -> None:
    """A plain commit in between is further on than what the marker then makes count."""
    story.logs[OFFSETS].insert(5, commit_batch(5))


def _acknowledged_commit_is_not_reported(story: Story) -> None:
    story.add(_fetched(at_ns=71, asked_ns=70, offset=2))


def _committed_offsets_are_gone(story: Story) -> None:
    """What a coordinator that is still loading must never say."""
    story.add(_fetched(at_ns=71, asked_ns=70, offset=-1))


def _invented_offset_is_reported(story: Story) -> None:
    story.add(_fetched(at_ns=71, asked_ns=70, offset=77))


def _fetched(*, at_ns: int, asked_ns: int, offset: int) -> OffsetFetched:
    return OffsetFetched(
        actor="asker", at_ns=at_ns, asked_ns=asked_ns, group=GROUP, topic="in", partition=0, offset=offset
    )


PLANTED: list[tuple[Plant, str]] = [
    (_aborted_record_is_read, "only what is committed is read"),
    (_open_record_is_read, "only what is committed is read"),
    (_record_that_is_not_there_is_read, "only what is committed is read"),
    (_record_is_read_before_its_commit, "only what is committed is read"),
    (_committed_record_is_skipped, "readers skip nothing"),
    (_record_is_read_twice, "readers skip nothing"),
    (_record_is_made_twice, "every record once"),
    (_record_is_lost, "every record once"),
    (_records_without_their_offsets, "every record once"),
    (_made_of_nothing, "every record once"),
    (_group_stops_early, "every record once"),
    (_transaction_is_torn, "transactions are whole"),
    (_reported_committed_and_is_aborted, "transactions are whole"),
    (_committed_and_nobody_asked, "transactions are whole"),
    (_transaction_never_ends, "logs are whole"),
    (_offsets_have_a_gap, "logs are whole"),
    (_acknowledged_record_is_gone, "what was acknowledged is there"),
    (_record_acknowledged_without_an_offset_is_gone, "what was acknowledged is there"),
    (_offset_names_two_records, "what was acknowledged is there"),
    (_input_is_out_of_order, "order is kept"),
    (_input_is_doubled, "order is kept"),
    (_output_is_out_of_order, "order is kept"),
    (_two_owners_in_an_epoch, "one owner per epoch"),
    (_two_owners_at_a_time, "one owner at a time"),
    (_commit_goes_back, "commits go forward"),
    (_commit_is_taken_away, "commits go forward"),
    (_second_commit_is_overtaken, "commits go forward"),
    (_commit_of_a_transaction_counts_from_its_marker, "commits go forward"),
    (_acknowledged_commit_is_not_reported, "committed offsets are reported"),
    (_committed_offsets_are_gone, "committed offsets are reported"),
    (_invented_offset_is_reported, "committed offsets are reported"),
]


def test_a_sound_history_has_no_violation() -> None:
    assert check(Story.sound().history()) == []


@pytest.mark.parametrize(("plant", "rule"), PLANTED, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_violation_is_found(plant: Plant, rule: str) -> None:
    story = Story.sound()
    plant(story)
    assert rule in {violation.rule for violation in check(story.history())}


def test_every_rule_has_a_planted_violation() -> None:
    assert {rule for _, rule in PLANTED} == set(RULES)


def test_a_commit_goes_back_where_that_was_asked_for() -> None:
    story = Story.sound()
    story.logs[OFFSETS].append(commit_batch(0))
    story.add(CommitAsked(actor="admin", at_ns=90, group=GROUP, topic="in", partition=0, offset=0, back=True))
    assert {each.rule for each in check(story.history())} == {"every record once"}, "all is to be made again"


@pytest.mark.parametrize("interruption", [Paused, Lost])
def test_a_member_that_stood_still_or_was_put_out_may_learn_of_it_late(interruption: type[Event]) -> None:
    """It believes that it holds what another has by now; the generation decides."""
    story = Story.sound()
    gone = Paused(actor="one", at_ns=11) if interruption is Paused else Lost(actor="one", at_ns=39, group=GROUP)
    story.add(gone, owns("three", 35, epoch=2, partitions=(("in", 0),)))
    story.remove(Owns, "two")
    assert check(story.history()) == []


@pytest.mark.parametrize(
    "log",
    [
        [generation_batch(1, "member-one"), generation_batch(3, "member-three", "member-four")],
        [member_batch("member-one", 1), member_batch("member-one", None), member_batch("member-three", 3)],
    ],
    ids=["classic", "consumer"],
)
def test_a_member_that_never_learned_that_it_was_put_out_is_known_from_the_log(log: list[Batch]) -> None:
    story = Story.sound()
    _two_owners_at_a_time(story)
    story.logs[OFFSETS] += log
    assert check(story.history()) == []


@pytest.mark.parametrize(
    "log",
    [
        [generation_batch(1, "member-one"), generation_batch(3, "member-one", "member-three")],
        [generation_batch(2, "member-three")],
        [member_batch("member-one", 1), member_batch("member-three", 3), member_batch("member-one", None)],
    ],
    ids=["classic", "classic, of another generation", "consumer, put out only then"],
)
def test_a_member_of_the_group_does_not_share_its_partitions(log: list[Batch]) -> None:
    story = Story.sound()
    _two_owners_at_a_time(story)
    story.logs[OFFSETS] += log
    assert {each.rule for each in check(story.history())} == {"one owner at a time"}


def test_a_killed_member_holds_nothing() -> None:
    story = Story.sound()
    story.events = [each for each in story.events if not (isinstance(each, Owns) and each.at_ns == 40)]
    story.remove(Lost, "two")
    assert {each.rule for each in check(story.history())} == {"one owner at a time"}
    story.add(Killed(actor="one", at_ns=40))
    assert check(story.history()) == []


def test_what_is_under_way_is_no_violation_while_the_history_has_not_ended() -> None:
    story = Story.sound()
    story.logs[SOURCE].append(Batch([input_value(4)]))
    story.logs[TARGET].append(Batch([derived("two", 1, 4)], producer_id=TWO))
    assert check(story.history(ended=False)) == []
    assert {each.rule for each in check(story.history())} == {"logs are whole", "every record once"}


def test_a_transaction_that_nobody_heard_of_may_have_either_outcome() -> None:
    story = Story.sound()
    story.remove(Ended, "two")
    story.remove(CommitAcknowledged, "two")
    assert check(story.history()) == []


def test_an_acknowledgement_without_an_offset_is_kept_wherever_the_record_is() -> None:
    story = Story.sound()
    story.add(Acknowledged(actor="feeder", at_ns=2, topic="in", partition=0, offset=None, value=input_value(3)))
    assert check(story.history()) == []


def test_journals_give_back_what_was_noted_in_the_order_of_time(tmp_path: Path) -> None:
    story = Story.sound()
    journals = {actor: Journal(tmp_path, actor) for actor in ("feeder", "one", "two", "reader")}
    for event in story.events:
        journals[event.actor].note(event)
    for journal in journals.values():
        journal.close()
    assert sorted(read_journals(tmp_path), key=repr) == sorted(story.events, key=repr)
    moments = [event.at_ns for event in read_journals(tmp_path)]
    assert moments == sorted(moments)
