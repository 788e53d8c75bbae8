"""How changes of in-sync replicas get to the controller, and their outcomes back to the partitions."""

import asyncio
import uuid
from typing import Any, cast

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch, TopicPartition
from kaspar.broker.partitions import Partitions
from kaspar.broker.replication.in_sync import AlterPartitionManager
from kaspar.broker.services import CurrentSettings, Failures, Tasks
from kaspar.config import BrokerSettings
from kaspar.controller.events import DONE, AlterPartitions, IsrOutcome
from kaspar.controller.shell import Committed
from kaspar.metadata.image import PartitionImage
from kaspar.metadata.images import ImageVersion
from kaspar.replication.in_sync import AfterRefusal, IsrProposal
from tests.unit.broker.running import until

ME, SECOND, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


class RecordingPartition:
    """Has a proposal pending, and hears of refusals."""

    topic_id = uuid.UUID(int=1)
    topic_partition = TopicPartition("t", 0)

    def __init__(self) -> None:
        self.state = self
        self.pending: IsrProposal | None = None

    def isr_refused(self, proposal: IsrProposal, code: ErrorCode) -> AfterRefusal:
        return AfterRefusal.WAIT


class SlowController:
    """Responds when the test says so."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[tuple[AlterPartitions, asyncio.Future[Any]]] = asyncio.Queue()

    async def commit(self, event: Any) -> Any:
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self.asked.put((event, response))
        return Committed(await response, ImageVersion(1, 1))


def proposal(partition_epoch: int, added: BrokerId, *isr: BrokerId) -> IsrProposal:
    return IsrProposal(LeaderEpoch(1), partition_epoch, isr, (-1,) * len(isr), added)


def done(event: AlterPartitions) -> tuple[IsrOutcome, ...]:
    (change,) = event.changes
    partition = PartitionImage((ME, SECOND, THIRD), change.new_isr, ME, change.leader_epoch, change.partition_epoch + 1)
    return (IsrOutcome(change, DONE, partition),)


def test_a_proposal_made_while_the_response_to_an_earlier_one_is_under_way_is_submitted() -> None:
    """The image may show the first change before its response arrives. Then the next proposal is made at once."""

    async def scenario() -> None:
        failures = Failures()
        controller, partition = SlowController(), RecordingPartition()
        manager = AlterPartitionManager(
            ME,
            CurrentSettings(BrokerSettings.of({})),
            partitions=Partitions(),
            controller=cast(Any, controller),
            broker_epoch=lambda: 5,
            tasks=Tasks(failures),
            failures=failures,
        )
        first, second = proposal(0, SECOND, ME, SECOND), proposal(1, THIRD, ME, SECOND, THIRD)
        partition.pending = first
        manager.propose(cast(Any, partition), first)
        event, response = await controller.asked.get()
        partition.pending = second
        manager.propose(cast(Any, partition), second)
        response.set_result(done(event))
        event, response = await asyncio.wait_for(controller.asked.get(), 5)
        assert event.changes[0].new_isr == (ME, SECOND, THIRD)
        response.set_result(done(event))
        await until(lambda: manager.expansions == 2)

    asyncio.run(scenario())
