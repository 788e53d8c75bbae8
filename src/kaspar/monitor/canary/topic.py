"""The canary's topic: its metadata, and the requests that create, extend and rebalance it.

Without permission to reassign replicas or elect leaders, the canary uses the partitions as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.client.admin.creation import NewTopic, creatable
from kaspar.client.async_client import AsyncClient
from kaspar.client.cluster_core import refuse
from kaspar.monitor.canary.layout import Changes, TopicPartitionState, changes
from kaspar.monitor.canary.settings import CanarySettings
from kaspar.protocol.messages import alter_partition_reassignments as reassignments
from kaspar.protocol.messages import create_partitions, create_topics, elect_leaders
from kaspar.protocol.messages.metadata import MetadataResponse

log = get_log(__name__)

_TIMEOUT_MS: Final = 5_000
_PREFERRED: Final = 0
_SEGMENT_BYTES: Final = 1024 * 1024  # retention deletes whole segments
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(frozen=True, slots=True)
class View:
    """The topic as of the last metadata refresh."""

    topic_id: UUID
    partitions: Mapping[int, TopicPartitionState]

    def led_by(self, broker: int) -> list[int]:
        return [number for number, each in self.partitions.items() if each.leader == broker]

    @property
    def leaders(self) -> dict[int, int]:
        return {number: each.leader for number, each in self.partitions.items()}


class CanaryTopic:
    def __init__(self, client: AsyncClient, settings: CanarySettings) -> None:
        self.name = settings.canary_topic
        self.created = 0
        self._client = client
        self._settings = settings
        self._racks: dict[int, str | None] = {}
        self._last_seen_ms: dict[int, float] = {}

    async def look(self, now_ms: float) -> View | None:
        """Returns None if the topic does not exist. Raises Refused, and OSError if no broker responds."""
        response = await self._client.refresh_metadata([self.name])
        self._racks = {broker.node_id: broker.rack for broker in response.brokers}
        self._last_seen_ms |= dict.fromkeys(self._racks, now_ms)
        return _view(response)

    async def arrange(self, view: View | None, now_ms: float) -> bool:
        """Make the next change that is needed for each broker to lead a partition. Returns whether there was one.
        Raises the same errors as `look`."""
        kept_ms = self._settings.canary_broker_removed_ms
        absent = {broker for broker, seen in self._last_seen_ms.items() if now_ms - seen <= kept_ms}
        if view is not None:  # their absence counts from now, because its start is unknown
            for broker in {each for state in view.partitions.values() for each in state.replicas}:
                if self._last_seen_ms.setdefault(broker, now_ms) == now_ms:
                    absent.add(broker)
        wanted = changes(
            None if view is None else view.partitions,
            self._racks,
            absent=absent - set(self._racks),
            replication_factor=self._settings.canary_replication_factor,
        )
        await self._apply(wanted, 0 if view is None else len(view.partitions))
        return wanted != Changes()

    async def _apply(self, wanted: Changes, count: int) -> None:
        if wanted.create:
            await self._create(wanted.create)
        elif wanted.add:
            await self._add(wanted.add, count)
        elif wanted.reassign:
            await self._reassign(wanted.reassign)
        elif wanted.elect:
            await self._elect(wanted.elect)

    async def _create(self, assignments: tuple[tuple[int, ...], ...]) -> None:
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": str(self._settings.canary_retention_ms),
            "segment.bytes": str(_SEGMENT_BYTES),
        }
        topic = creatable(NewTopic(self.name, configs=configs, assignments=assignments))
        response = await self._client.request_controller(
            create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS),
            create_topics.CreateTopicsResponse,
        )
        created = response.topics[0]
        if created.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another monitor has created it
            refuse(created.error_code, created.error_message or f"creating the topic {self.name}")
            self.created += 1
            log.info("created the canary's topic", topic=self.name, partitions=len(assignments))

    async def _add(self, assignments: tuple[tuple[int, ...], ...], count: int) -> None:
        topic = create_partitions.CreatePartitionsTopic(
            name=self.name,
            count=count + len(assignments),
            assignments=tuple(create_partitions.CreatePartitionsAssignment(broker_ids=each) for each in assignments),
        )
        response = await self._client.request_controller(
            create_partitions.CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS, validate_only=False),
            create_partitions.CreatePartitionsResponse,
        )
        for each in response.results:
            refuse(each.error_code, each.error_message or f"adding partitions to {self.name}")
        log.info("added partitions to the canary's topic", topic=self.name, partitions=count + len(assignments))

    async def _reassign(self, targets: Mapping[int, tuple[int, ...]]) -> None:
        topic = reassignments.ReassignableTopic(
            name=self.name,
            partitions=tuple(
                reassignments.ReassignablePartition(partition_index=number, replicas=replicas)
                for number, replicas in targets.items()
            ),
        )
        response = await self._client.request_controller(
            reassignments.AlterPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=(topic,)),
            reassignments.AlterPartitionReassignmentsResponse,
        )
        refuse(response.error_code, response.error_message or f"reassigning partitions of {self.name}")
        for result in response.responses:
            for each in result.partitions:
                refuse(each.error_code, each.error_message or f"reassigning partitions of {self.name}")
        log.info("moving replicas of the canary's topic", topic=self.name, partitions=len(targets))

    async def _elect(self, numbers: tuple[int, ...]) -> None:
        topic = elect_leaders.TopicPartitions(topic=self.name, partitions=numbers)
        response = await self._client.request_controller(
            elect_leaders.ElectLeadersRequest(
                election_type=_PREFERRED, topic_partitions=(topic,), timeout_ms=_TIMEOUT_MS
            ),
            elect_leaders.ElectLeadersResponse,
        )
        refuse(response.error_code, f"electing leaders of {self.name}")
        for result in response.replica_election_results:
            for each in result.partition_result:
                if each.error_code != ErrorCode.ELECTION_NOT_NEEDED:  # the controller has elected it already
                    refuse(each.error_code, each.error_message or f"electing leaders of {self.name}")


def _view(response: MetadataResponse) -> View | None:
    topic = response.topics[0]
    if topic.error_code in _UNKNOWN:
        return None
    refuse(topic.error_code, f"metadata of the topic {topic.name}")
    if not topic.partitions:
        raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"the topic {topic.name} has no partitions yet")
    return View(
        topic.topic_id,
        {
            each.partition_index: TopicPartitionState(each.leader_id, each.replica_nodes, each.isr_nodes)
            for each in topic.partitions
        },
    )
