"""Batches in flight behind one that a leader refused: they get its error, and the producer retries all of them."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.patient_clock import Moment
from kaspar.replication.partition import Partition
from kaspar.storage import Appended
from kaspar.storage.producers.entry import LAST_SEQUENCE
from tests.unit.replication.partitions import ME, OTHER, append, leadership, make_partition
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, log_config, make_batch, verify

PRODUCER = 7


class Scene:
    """A leader that refuses records for lack of replicas or of space, as a test wants."""

    def __init__(self, folder: Path) -> None:
        self.partition: Partition = make_partition(folder, log_config(min_insync_replicas=2))
        self.files = FaultyFiles()
        self.partition.log.directory.files = self.files
        self.partition.log.local.pwrite = self.files.pwrite
        self.partition_epoch = 0
        self.grow_isr()

    def shrink_isr(self) -> None:
        self._set_isr(ME)

    def grow_isr(self) -> None:
        self._set_isr(ME, OTHER)

    def _set_isr(self, *replicas: int) -> None:
        self.partition_epoch += 1
        in_sync = tuple(each for each in (ME, OTHER) if each in replicas)
        self.partition.lead_or_follow(leadership(partition_epoch=self.partition_epoch, in_sync=in_sync))

    def send(self, sequence: int, *, epoch: int = 0, transactional: bool = False) -> Appended:
        batch = make_batch(
            producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
        )
        return append(self.partition, batch, acks_all=True)

    def refusal(self, sequence: int, *, epoch: int = 0, transactional: bool = False) -> ErrorCode:
        with pytest.raises(Refused) as refused:
            self.send(sequence, epoch=epoch, transactional=transactional)
        return refused.value.code


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
