"""Submits changes of in-sync replicas to the controller, and runs the checks that lead to them.

It has the role of Kafka's AlterPartitionManager: changes that the leaders on this broker propose while one request is
under way are sent with the next, and a request that failed as a whole is repeated until the controller responds. A
proposal that is out of date by then is refused, which does no harm: it has the epochs that it is based on.

A leader acts on the image only, never on the controller's response: the image also has the min.insync.replicas with
which the controller has decided, and so which replicas it keeps as eligible leaders (KIP-966).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import CurrentSettings, Failures, Tasks
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AlterPartitions, IsrChange, IsrOutcome
from kaspar.replication.in_sync import AfterRefusal, IsrProposal
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

log = get_log(__name__)

RETRY_S: Final = 0.05
LONGEST_RETRY_S: Final = 1.0
MOST_CHANGES_AT_ONCE: Final = 1000
PARTITIONS_AT_ONCE: Final = 1000
"""How many partitions are checked before other work of the event loop runs."""


class AlterPartitionManager:
    def __init__(
        self,
        broker_id: BrokerId,
        settings: CurrentSettings,
        *,
        partitions: Partitions,
        controller: ControllerChannel,
        broker_epoch: Callable[[], int],
        tasks: Tasks,
        failures: Failures,
    ) -> None:
        self.expansions = 0
        self.shrinks = 0
        """Expansions and shrinks that were carried out since the start."""
        self.failures = 0
        """Changes that the controller has refused."""
        self._broker_id = broker_id
        self._settings = settings
        self._partitions = partitions
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._tasks = tasks
        self._failures = failures
        self._proposals: dict[Partition, IsrProposal] = {}
        self._is_submitting = False

    def start(self) -> None:
        self._tasks.spawn(self._check_periodically(), name="checks of in-sync replicas")

    # -- proposals ---------------------------------------------------------------------------------------------------

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        """Submit a change soon. The partition is told of a refusal; an accepted change appears in the image."""
        self._proposals[partition] = proposal
        if not self._is_submitting:
            self._is_submitting = True
            self._tasks.spawn(self._submit_all(), name="changes of in-sync replicas")

    async def _submit_all(self) -> None:
        delay_s = RETRY_S
        try:
            while self._take_pending():
                if await self._submit_some():
                    delay_s = RETRY_S
                else:
                    await asyncio.sleep(delay_s)
                    delay_s = min(2 * delay_s, LONGEST_RETRY_S)
        finally:
            self._is_submitting = False

    def _take_pending(self) -> dict[Partition, IsrProposal]:
        """The proposals that their partitions still wait for, as many as fit into a request."""
        self._proposals = {
            partition: proposal
            for partition, proposal in self._proposals.items()
            if partition.state.pending is proposal
        }
        return dict(list(self._proposals.items())[:MOST_CHANGES_AT_ONCE])

    async def _submit_some(self) -> bool:
        """Submit pending proposals. Returns whether none of them has to be submitted again."""
        sent = self._take_pending()
        changes = {self._change(partition, proposal): (partition, proposal) for partition, proposal in sent.items()}
        event = AlterPartitions(self._broker_id, self._broker_epoch(), tuple(changes))
        try:
            outcomes = (await self._controller.commit(event)).reply
        except (KasparError, OSError) as problem:
            reason = problem.message if isinstance(problem, Refused) else str(problem)
            log.info("in-sync replicas cannot be changed yet", partitions=len(sent), reason=reason)
            return False
        except Exception as problem:  # the edge of the task: leaders still wait for these changes
            log.exception("in-sync replicas could not be changed because of a bug")
            self._failures.on_bug(problem)
            return False
        retries = [self._finish(*changes[outcome.change], outcome) for outcome in outcomes]
        return not any(retries)

    def _change(self, partition: Partition, proposal: IsrProposal) -> IsrChange:
        return IsrChange(
            partition.topic_id,
            partition.topic_partition.partition,
            proposal.leader_epoch,
            proposal.partition_epoch,
            proposal.isr,
            proposal.broker_epochs,
        )

    def _finish(self, partition: Partition, proposal: IsrProposal, outcome: IsrOutcome) -> bool:
        """Process an outcome. Returns whether the change has to be submitted again."""
        code = outcome.outcome.error
        if code is ErrorCode.NONE and outcome.partition is not None:
            self._drop(partition, proposal)
            if proposal.added is None:
                self.shrinks += 1
            else:
                self.expansions += 1
            log.info(
                "the in-sync replicas have changed",
                partition=partition.topic_partition,
                isr=",".join(map(str, outcome.partition.isr)),
                partition_epoch=outcome.partition.partition_epoch,
            )
            return False  # it is pending until it is in the image
        self.failures += 1
        after = partition.isr_refused(proposal, code)
        if after is AfterRefusal.RETRY:
            return True
        self._drop(partition, proposal)
        log.info(
            "a change of in-sync replicas was rejected",
            partition=partition.topic_partition,
            isr=",".join(map(str, proposal.isr)),
            reason=outcome.outcome.message or code.name,
        )
        return False

    def _drop(self, partition: Partition, proposal: IsrProposal) -> None:
        """Remove a proposal whose outcome is known. If the image was faster than the response, the partition may have
        made another proposal by now, which is still to be submitted.
        """
        if self._proposals.get(partition) is proposal:
            del self._proposals[partition]

    # -- checks ------------------------------------------------------------------------------------------------------

    async def _check_periodically(self) -> None:
        """Check twice per `replica.lag.time.max.ms`, as Kafka's ReplicaManager does."""
        while True:
            await asyncio.sleep(self._settings.config.replica_lag_time_max_ms / 2000)
            await self._check(Partition.maybe_shrink_isr)

    async def _check(self, check: Callable[[Partition], None]) -> None:
        for number, partition in enumerate(tuple(self._partitions), 1):
            if partition.state.role is Role.LEADER and not partition.state.commits_alone:
                try:
                    check(partition)
                except Exception as problem:  # one partition's bug must not keep others from being checked
                    log.exception("in-sync replicas could not be checked", partition=partition.topic_partition)
                    self._failures.on_bug(problem)
            if number % PARTITIONS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def brokers_changed(self) -> None:
        """Check all partitions: a broker that is down no longer holds back a high watermark."""
        await self._check(Partition.recheck)
