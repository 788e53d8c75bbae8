"""Proposals of leaders on their way to a controller that may be away, refuse, or respond late."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, Offset
from kaspar.broker.hosting import leadership_of
from kaspar.broker.partitions import Partitions
from kaspar.broker.replication import in_sync
from kaspar.broker.replication.in_sync import AlterPartitionManager
from kaspar.broker.services import CurrentSettings, Failures, Tasks
from kaspar.config import BrokerSettings
from kaspar.controller.events import DONE, AlterPartitions, IsrChange, IsrOutcome, Outcome
from kaspar.controller.shell import Committed
from kaspar.metadata import PartitionImage
from kaspar.metadata.images import ImageVersion
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from tests.unit.broker.running import run, until
from tests.unit.replication.states import ME, OTHER, Cluster
from tests.unit.storage.logs import PARTITION, LogFolder


class ScriptedController:
    """Responds to each event with what comes next: a refusal of all of it, or a code for every change."""

    def __init__(self, *script: Refused | ErrorCode) -> None:
        self.script = list(script)
        self.asked: list[AlterPartitions] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.led: dict[uuid.UUID, Partition] = {}
        """Whose leaders get the image of what is carried out."""

    async def submit(self, event: Any) -> Any:
        return (await self.commit(event)).reply

    async def commit(self, event: Any) -> Committed[Any]:
        assert isinstance(event, AlterPartitions)
        self.asked.append(event)
        await self.gate.wait()
        following = self.script.pop(0) if self.script else ErrorCode.NONE
        if isinstance(following, Refused):
            raise following
        return Committed(tuple(self.outcome(change, following) for change in event.changes), ImageVersion(1, 1))

    def outcome(self, change: IsrChange, code: ErrorCode) -> IsrOutcome:
        if code is not ErrorCode.NONE:
            return IsrOutcome(change, Outcome(code))
        changed = PartitionImage((ME, OTHER), change.new_isr, ME, change.leader_epoch, change.partition_epoch + 1)
        if change.topic_id in self.led:
            self.led[change.topic_id].lead_or_follow(leadership_of(changed))
        return IsrOutcome(change, DONE, changed)


def manager_of(controller: ScriptedController, tmp_path: Path) -> AlterPartitionManager:
    failures = Failures()
    settings = BrokerSettings.of({"node.id": "1", "log.dirs": str(tmp_path)})
    return AlterPartitionManager(
        ME,
        CurrentSettings(settings),
        partitions=Partitions(),
        controller=controller,
        broker_epoch=lambda: 5,
        tasks=Tasks(failures),
        failures=failures,
    )


def led(
    manager: AlterPartitionManager,
    folder: Path,
    controller: ScriptedController | None = None,
    isr: tuple[BrokerId, ...] = (ME,),
) -> Partition:
    """Of a broker that follows this controller's images, if one is given."""
    log = LogFolder(folder).log
    partition = Partition(PARTITION, uuid.uuid4(), log, ME, cluster=Cluster(), propose=manager.propose)
    partition.lead_or_follow(Leadership(ME, LeaderEpoch(0), 0, (ME, OTHER), isr))
    if controller is not None:
        controller.led[partition.topic_id] = partition
    return partition


def test_a_proposal_is_carried_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = ScriptedController()
        manager = manager_of(controller, tmp_path)
        partition = led(manager, tmp_path / "a", controller)
        partition.follower_fetched(OTHER, 1, 0, 0)
        await until(lambda: partition.state.leadership.in_sync_replicas == (ME, OTHER))
        (event,) = controller.asked
        assert (event.broker_id, event.broker_epoch) == (ME, 5)
        assert (event.changes[0].new_isr, event.changes[0].new_isr_epochs) == ((ME, OTHER), (-1, 1))
        assert manager.expansions == 1

    run(scenario())


def test_a_controller_that_is_away_is_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        away = Refused(ErrorCode.NOT_CONTROLLER, "away")
        controller = ScriptedController(away, ErrorCode.NOT_CONTROLLER, away)
        manager = manager_of(controller, tmp_path)
        partition = led(manager, tmp_path / "a", controller)
        partition.follower_fetched(OTHER, 1, 0, 0)
        await until(lambda: partition.state.leadership.in_sync_replicas == (ME, OTHER))
        assert len(controller.asked) == 4

    run(scenario())


def test_what_is_proposed_meanwhile_goes_into_the_next_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = ScriptedController()
        controller.gate.clear()
        manager = manager_of(controller, tmp_path)
        partitions = [led(manager, tmp_path / str(number), controller) for number in range(4)]
        for partition in partitions:
            partition.follower_fetched(OTHER, 1, 0, 0)
            await until(lambda: len(controller.asked) == 1)
        controller.gate.set()
        await until(lambda: all(one.state.leadership.in_sync_replicas == (ME, OTHER) for one in partitions))
        assert [len(event.changes) for event in controller.asked] == [1, 3]

    run(scenario())


def test_what_the_controller_refuses_for_good_is_not_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = ScriptedController(ErrorCode.INELIGIBLE_REPLICA)
        manager = manager_of(controller, tmp_path)
        partition = led(manager, tmp_path / "a", controller)
        partition.follower_fetched(OTHER, 1, 0, 0)
        await until(lambda: partition.state.pending is None)
        assert partition.state.leadership.in_sync_replicas == (ME,)
        assert manager.failures == 1
        partition.follower_fetched(OTHER, 1, 0, 0)  # its next fetch proposes it again
        await until(lambda: partition.state.leadership.in_sync_replicas == (ME, OTHER))
        assert len(controller.asked) == 2

    run(scenario())


def test_a_proposal_that_the_image_has_overtaken_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = ScriptedController(Refused(ErrorCode.NOT_CONTROLLER, "away"))
        manager = manager_of(controller, tmp_path)
        partition = led(manager, tmp_path / "a", controller)
        partition.follower_fetched(OTHER, 1, 0, 0)
        await until(lambda: len(controller.asked) == 1)
        partition.lead_or_follow(Leadership(BrokerId(2), LeaderEpoch(1), 1, (ME, OTHER), (OTHER,)))
        await asyncio.sleep(4 * in_sync.RETRY_S)
        assert len(controller.asked) == 1

    run(scenario())


def test_a_leader_commits_nothing_by_the_response_alone(tmp_path: Path) -> None:
    """The controller may have decided by another min.insync.replicas, which comes with the image: the replica that
    left may be an eligible leader, without the records that would be committed here (KIP-966).
    """

    async def scenario() -> None:
        controller = ScriptedController()
        manager = manager_of(controller, tmp_path)
        partition = led(manager, tmp_path / "a", isr=(ME, OTHER))
        proposal = partition.state.maybe_shrink(Offset(5), now_ms=10**9)
        assert proposal is not None
        partition.state.local_end_moved(Offset(5))
        manager.propose(partition, proposal)
        await until(lambda: manager.shrinks == 1)
        assert partition.high_watermark == 0
        assert partition.state.maximal_isr == (ME, OTHER)
        partition.state.min_insync_replicas = 2
        partition.lead_or_follow(Leadership(ME, LeaderEpoch(0), 1, (ME, OTHER), (ME,)))
        assert partition.high_watermark == 0
        assert partition.state.pending is None

    run(scenario())
