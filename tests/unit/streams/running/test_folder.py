"""What a program keeps of an earlier run when it starts again, and what it discards."""

from pathlib import Path

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client.offsets import CommittedOffset
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.folder import BatchFacts, RunFolder
from kaspar.streams.running.outdated import SubTopologyTopics

INPUT = TopicPartition("lines", 0)
REPARTITION = TopicPartition("app-by-word-repartition", 0)
TOPICS = [
    SubTopologyTopics(0, frozenset(), frozenset({"app-first-changelog"})),
    SubTopologyTopics(1, frozenset({REPARTITION.topic}), frozenset({"app-second-changelog"})),
]
IDS = {"app-first-changelog": "A", "app-second-changelog": "B", REPARTITION.topic: "C"}
READ = {0: ["lines"], 1: [REPARTITION.topic]}


def opened(path: Path, committed: dict[TopicPartition, CommittedOffset], **ids: str) -> RunFolder:
    folder = RunFolder(path)
    folder.open(
        committed, TOPICS, {**IDS, **{name.replace("_", "-"): topic_id for name, topic_id in ids.items()}}, READ
    )
    return folder


def used(path: Path) -> RunFolder:
    """A folder in which both sub-topologies have run."""
    folder = opened(path, {})
    for number in (0, 1):
        folder.checkpoint(number).mkdir(parents=True)
        folder.state(number).mkdir(parents=True)
        folder.write_batch_facts(number, BatchFacts(7, 1, {}))
    return folder


def kept(folder: RunFolder) -> tuple[list[int], list[int], list[int]]:
    """The sub-topologies with a checkpoint, with facts of a batch, and with local state."""
    numbers = (0, 1)
    return (
        [number for number in numbers if folder.checkpoint(number).exists()],
        [number for number in numbers if folder.batch_facts(number) is not None],
        [number for number in numbers if folder.state(number).exists()],
    )


def test_offsets_with_its_own_metadata_leave_all_as_it_is(tmp_path: Path) -> None:
    before = used(tmp_path)
    after = opened(tmp_path, {INPUT: CommittedOffset(5, before.metadata)})
    assert after.metadata == before.metadata
    assert kept(after) == ([0, 1], [0, 1], [0, 1])


def test_offsets_that_have_expired_are_no_reset(tmp_path: Path) -> None:
    before = used(tmp_path)
    after = opened(tmp_path, {})
    assert after.metadata == before.metadata
    assert kept(after) == ([0, 1], [0, 1], [0, 1])


def test_offsets_without_metadata_end_the_history(tmp_path: Path) -> None:
    """One that was reset is enough: another input topic may have been left out."""
    before = used(tmp_path)
    committed = {INPUT: CommittedOffset(3, ""), TopicPartition("other", 0): CommittedOffset(9, before.metadata)}
    after = RunFolder(tmp_path)
    assert after.open(committed, TOPICS, IDS, READ) == {INPUT: 3, TopicPartition("other", 0): 9}
    assert after.metadata != before.metadata
    assert kept(after) == ([], [], [])
    assert after.state(0) != before.state(0), "another machine may still have the old files"


def test_offsets_of_another_folder_end_the_history(tmp_path: Path) -> None:
    used(tmp_path / "here")
    elsewhere = used(tmp_path / "elsewhere")
    after = opened(tmp_path / "here", {INPUT: CommittedOffset(3, elsewhere.metadata)})
    assert kept(after) == ([], [], [])
    assert after.metadata != elsewhere.metadata


def test_new_folder_begins_at_the_offsets_of_the_group(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new")
    assert folder.open({INPUT: CommittedOffset(3, "somebody")}, TOPICS, IDS, READ) == {INPUT: 3}
    assert RunFolder(tmp_path / "new").open({INPUT: CommittedOffset(3, folder.metadata)}, TOPICS, IDS, READ) == {
        INPUT: 3
    }


def test_recreated_changelog_ends_the_local_state_of_its_sub_topology(tmp_path: Path) -> None:
    before = used(tmp_path)
    after = opened(tmp_path, {INPUT: CommittedOffset(5, before.metadata)}, app_first_changelog="X")
    assert after.metadata == before.metadata
    assert kept(after) == ([0, 1], [0, 1], [1])
    assert after.state(0) != before.state(0)
    assert after.state(1) == before.state(1)
    again = opened(tmp_path, {}, app_first_changelog="X")
    assert again.state(0) == after.state(0), "its new id is known now"


def test_recreated_repartition_topic_ends_the_checkpoint_that_reads_it(tmp_path: Path) -> None:
    before = used(tmp_path)
    committed = {INPUT: CommittedOffset(5, before.metadata), REPARTITION: CommittedOffset(8, before.metadata)}
    after = RunFolder(tmp_path)
    begin = after.open(committed, TOPICS, {**IDS, REPARTITION.topic: "X"}, READ)
    assert begin == {INPUT: 5}, "the offset is one of the old topic"
    assert kept(after) == ([0], [0], [0])


def test_topic_without_a_known_id_is_taken_to_be_the_same(tmp_path: Path) -> None:
    before = used(tmp_path)
    after = RunFolder(tmp_path)
    after.open({}, TOPICS, {}, READ)
    assert kept(after) == ([0, 1], [0, 1], [0, 1])
    assert opened(tmp_path, {}).state(0) == before.state(0)
    assert opened(tmp_path, {}, app_first_changelog="X").state(0) != before.state(0), "the old id was not forgotten"


@pytest.mark.parametrize(
    "sources",
    [
        {0: ["orders"], 1: ["lines"], 2: [REPARTITION.topic]},
        {0: ["lines", REPARTITION.topic]},
        {0: [REPARTITION.topic]},
    ],
    ids=["a stream before the others", "two that are joined", "the first one removed"],
)
def test_a_topic_whose_offsets_are_in_another_checkpoint_is_refused(
    tmp_path: Path, sources: dict[int, list[str]]
) -> None:
    """The sub-topology that reads it now would begin at its first record, with the state of the last."""
    before = used(tmp_path)
    own = {INPUT: CommittedOffset(5, before.metadata)}
    for _ in range(2):
        with pytest.raises(StreamsError, match="was read by sub-topology"):
            RunFolder(tmp_path).open(own, TOPICS, IDS, sources)
    assert kept(opened(tmp_path, own)) == ([0, 1], [0, 1], [0, 1]), "the old program goes on"
    RunFolder(tmp_path).open({INPUT: CommittedOffset(0, "")}, TOPICS, IDS, sources)  # it was reset


def test_new_topics_and_sub_topologies_behind_the_old_ones_are_accepted(tmp_path: Path) -> None:
    before = used(tmp_path)
    after = RunFolder(tmp_path)
    after.open(
        {INPUT: CommittedOffset(5, before.metadata)},
        [*TOPICS, SubTopologyTopics(2, frozenset(), frozenset())],
        IDS,
        {0: ["lines", "more"], 1: [REPARTITION.topic], 2: ["orders"]},
    )
    assert kept(after) == ([0, 1], [0, 1], [0, 1])


def test_recreated_topic_of_a_global_table_has_no_fixed_end(tmp_path: Path) -> None:
    topics = [SubTopologyTopics(0, frozenset(), frozenset({"rates", "names"}))]
    before = RunFolder(tmp_path)
    before.open({}, topics, {"rates": "A", "names": "B"}, {})
    before.write_batch_facts(0, BatchFacts(7, 1, {"rates": [1000], "names": [5]}))
    after = RunFolder(tmp_path)
    after.open({}, topics, {"rates": "X", "names": "B"}, {})
    assert after.batch_facts(0) == BatchFacts(7, 1, {"names": [5]})


def test_folder_that_cannot_be_created_is_reported_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StreamsError, match=r"file/app is not writable \(Not a directory\): set state.dir"):
        RunFolder(tmp_path / "file" / "app").create()
