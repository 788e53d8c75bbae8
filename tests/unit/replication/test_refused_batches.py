"""Batches in flight behind one that a leader refused: they get its error, and the producer retries all of them."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.patient_clock import Moment
from kaspar.records import Record, build_batch
from kaspar.replication.partition import Partition
from kaspar.storage import Appended
from kaspar.storage.producers.entry import LAST_SEQUENCE
from kaspar.storage.producers.refusals import MAX_PRODUCERS, MOST_BEHIND
from tests.unit.replication.partitions import ME, OTHER, append, leadership, make_partition
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, log_config, make_batch, verify

PRODUCER = 7


class Scene:
    """A replica that rejects records, because replicas or space are missing or it is no leader, as a test wants."""

    def __init__(self, folder: Path) -> None:
        self.partition: Partition = make_partition(folder, log_config(min_insync_replicas=2))
        self.files = FaultyFiles()
        self.partition.log.directory.files = self.files
        self.partition.log.local.pwrite = self.files.pwrite
        self.epoch = 0
        self.partition_epoch = 0
        self.grow_isr()

    def shrink_isr(self) -> None:
        self._decide(ME, (ME,))

    def grow_isr(self) -> None:
        self._decide(ME, (ME, OTHER))

    def follow(self) -> None:
        self.epoch += 1
        self._decide(OTHER, (ME, OTHER))

    def lead(self) -> None:
        self.epoch += 1
        self._decide(ME, (ME, OTHER))

    def _decide(self, leader: BrokerId, in_sync: tuple[BrokerId, ...]) -> None:
        self.partition_epoch += 1
        decided = leadership(leader=leader, epoch=self.epoch, partition_epoch=self.partition_epoch, in_sync=in_sync)
        self.partition.lead_or_follow(decided)

    def send(
        self, sequence: int, *, epoch: int = 0, transactional: bool = False, producer_id: int = PRODUCER
    ) -> Appended:
        batch = make_batch(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
        )
        return append(self.partition, batch, acks_all=True)

    def refusal(
        self, sequence: int, *, epoch: int = 0, transactional: bool = False, producer_id: int = PRODUCER
    ) -> ErrorCode:
        with pytest.raises(Refused) as refused:
            self.send(sequence, epoch=epoch, transactional=transactional, producer_id=producer_id)
        return refused.value.code

    def replicate(self, sequence: int) -> None:
        batch = build_batch(
            [Record(NOW_MS, None, b"value")],
            base_offset=self.partition.log.log_end_offset,
            leader_epoch=self.epoch,
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=sequence,
        )
        fetched = self.partition.log.check_fetched(batch, leader_epoch=self.epoch)
        self.partition.append_as_follower(fetched, now_ms=NOW_MS)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("known", [True, False], ids=["known producer", "new producer"])
def test_batches_behind_one_that_found_the_disk_full_get_its_error(scene: Scene, known: bool) -> None:
    first = 1 if known else 0
    for sequence in range(first):
        scene.send(sequence)
    scene.files.bytes_left = 0
    assert scene.refusal(first) is ErrorCode.KAFKA_STORAGE_ERROR
    assert scene.refusal(first + 1) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    assert scene.refusal(first + 2) is ErrorCode.KAFKA_STORAGE_ERROR, "space is back, but the gap is still there"
    assert [scene.send(first + number).base_offset for number in range(3)] == [first, first + 1, first + 2]


@pytest.mark.parametrize("known", [True, False], ids=["known producer", "new producer"])
def test_batches_behind_one_that_found_too_few_replicas_get_its_error(scene: Scene, known: bool) -> None:
    first = 1 if known else 0
    for sequence in range(first):
        scene.send(sequence)
    scene.shrink_isr()
    assert scene.refusal(first) is ErrorCode.NOT_ENOUGH_REPLICAS
    scene.grow_isr()
    assert scene.refusal(first + 1) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert scene.refusal(first + 2) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert [scene.send(first + number).base_offset for number in range(3)] == [first, first + 1, first + 2]


@pytest.mark.parametrize("known", [True, False], ids=["known producer", "new producer"])
def test_batches_behind_one_that_came_before_the_election_get_its_error(scene: Scene, known: bool) -> None:
    """A client learns of a new leader from another broker, and may be there before the leader itself knows."""
    first = 1 if known else 0
    for sequence in range(first):
        scene.send(sequence)
    scene.follow()
    assert scene.refusal(first) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert scene.refusal(first + 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    scene.lead()
    for number in range(2, 5):
        assert scene.refusal(first + number) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [scene.send(first + number).base_offset for number in range(5)] == [first + number for number in range(5)]


def test_batches_behind_a_rejected_one_that_has_been_replicated_get_its_error(scene: Scene) -> None:
    """The leader before had stored the first two of three: after the election only the third is missing."""
    scene.send(0)
    scene.follow()
    for sequence in (1, 2, 3):
        assert scene.refusal(sequence) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    scene.replicate(1)
    scene.replicate(2)
    scene.lead()
    assert scene.refusal(4) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [scene.send(sequence).base_offset for sequence in range(1, 5)] == [1, 2, 3, 4]


def test_producer_that_does_not_retry_learns_of_the_gap(scene: Scene) -> None:
    """The batch went to another leader, whose records were lost with it."""
    scene.send(0)
    scene.follow()
    assert scene.refusal(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    scene.lead()
    for sequence in range(2, 2 + MOST_BEHIND):
        assert scene.refusal(sequence) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert scene.refusal(6) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_rejected_producers_are_bounded(scene: Scene) -> None:
    scene.send(0)
    scene.follow()
    assert scene.refusal(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    for producer_id in range(100, 100 + MAX_PRODUCERS):
        assert scene.refusal(1, producer_id=producer_id) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    scene.lead()
    assert scene.refusal(2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_first_batch_of_an_epoch_is_not_skipped_either(scene: Scene) -> None:
    scene.send(0)
    scene.files.bytes_left = 0
    assert scene.refusal(0, epoch=1) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    assert scene.refusal(1, epoch=1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert scene.refusal(1, epoch=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "nothing of this epoch was refused"
    assert [scene.send(number, epoch=1).base_offset for number in range(2)] == [1, 2]


@pytest.mark.parametrize("version_2", [True, False])
def test_the_first_batch_of_a_transaction_is_not_skipped_either(scene: Scene, version_2: bool) -> None:
    verify(scene.partition.log, PRODUCER, version_2=version_2)
    scene.files.bytes_left = 0
    assert scene.refusal(0, transactional=True) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    assert scene.refusal(1, transactional=True) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [scene.send(number, transactional=True).base_offset for number in range(2)] == [0, 1]


def test_sequences_wrap_around(scene: Scene) -> None:
    scene.send(LAST_SEQUENCE - 1)
    scene.files.bytes_left = 0
    assert scene.refusal(LAST_SEQUENCE) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    assert scene.refusal(0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [scene.send(sequence).base_offset for sequence in (LAST_SEQUENCE, 0)] == [1, 2]


def test_once_the_refused_batch_is_stored_a_gap_is_a_gap(scene: Scene) -> None:
    scene.send(0)
    scene.files.bytes_left = 0
    assert scene.refusal(1) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    scene.send(1)
    assert scene.refusal(3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_refused_batch_that_is_never_retried_is_forgotten(scene: Scene) -> None:
    scene.files.bytes_left = 0
    assert scene.refusal(0) is ErrorCode.KAFKA_STORAGE_ERROR
    scene.files.recover()
    for _ in scene.partition.log.expire_producers(Moment(NOW_MS, 0, NOW_MS), 1000):
        pass
    assert scene.send(1).base_offset == 0, "an unknown producer may begin with any sequence"
