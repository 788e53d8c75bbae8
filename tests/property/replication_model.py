"""Three replicas of a partition and a controller, as pure cores with logs in memory: every message may be late or lost.

A replica sees images when a test lets it, so there may be several that believe to lead. A crash loses the memory of a
replica and, if it was unclean, the end of its log. The controller does what it does about it: a broker that is down is
replaced as leader, one that restarted uncleanly leaves the in-sync replicas unless it is the last.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, Offset, TopicPartition, random_uuid
from kaspar.replication.divergence import Diverging, diverging_epoch
from kaspar.replication.fetches import PartitionFetch, Position, Verdict
from kaspar.replication.in_sync import IsrProposal
from kaspar.replication.state import FollowerFetch, Leadership, PartitionState, Role
from kaspar.storage import EpochEnd
from kaspar.storage.leader_epochs import LeaderEpochCache

LAG_MS = 100
BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
NO_LEADER = BrokerId(-1)
TOPIC_ID = random_uuid()


class Record(NamedTuple):
    epoch: int
    value: int


class MemoryLog:
    def __init__(self, records: list[Record]) -> None:
        self.records: list[Record] = []
        self.cache = LeaderEpochCache()
        self.extend(records)

    log_start_offset = 0

    @property
    def log_end_offset(self) -> int:
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        return self.cache.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        return self.cache.end_offset_for(epoch, len(self.records))

    def extend(self, records: list[Record]) -> None:
        for record in records:
            if record.epoch != self.cache.latest_epoch:
                self.cache.assign(record.epoch, len(self.records))
            self.records.append(record)

    def truncate(self, end: int) -> None:
        del self.records[end:]
        self.cache.truncate_from_end(len(self.records))


class Response(NamedTuple):
    asked: Position
    error: ErrorCode
    diverging: Diverging | None = None
    records: tuple[Record, ...] = ()
    high_watermark: int = -1


@dataclass
class Image:
    leadership: Leadership
    brokers: dict[BrokerId, int] = field(default_factory=dict)


class Replica:
    """One broker's replica while its process runs."""

    replica_lag_time_max_ms = LAG_MS

    def __init__(self, broker_id: BrokerId, epoch: int, log: MemoryLog, high_watermark: int) -> None:
        self.broker_id = broker_id
        self.epoch = epoch
        self.log = log
        self.brokers: dict[BrokerId, int] = {}
        known = Offset(min(high_watermark, log.log_end_offset))
        self.state = PartitionState(broker_id, self, known, min_insync_replicas=1)
        self.fetch: PartitionFetch | None = None
        self.response: Response | None = None
        self.proposal: IsrProposal | None = None

    def eligible_epoch(self, broker_id: BrokerId) -> int | None:
        return self.brokers.get(broker_id)

    def see(self, image: Image, now_ms: int) -> None:
        """As broker/hosting.py does."""
        self.brokers = dict(image.brokers)
        end = Offset(self.log.log_end_offset)
        leadership = image.leadership
        began = self.state.decide_role(leadership, log_end_offset=end, durable_end=end, now_ms=now_ms)
        if began:
            self.fetch = None
            if self.state.role is Role.LEADER:
                self.log.cache.assign(leadership.leader_epoch, end)
            elif leadership.leader != NO_LEADER:
                self.fetch = PartitionFetch(
                    TOPIC_ID,
                    TopicPartition("t", 0),
                    self.log,
                    leader_epoch=leadership.leader_epoch,
                    high_watermark=self.state.high_watermark,
                )
        self.state.recheck()

    # -- leader --------------------------------------------------------------------------------------------------------

    def append(self, value: int) -> None:
        self.log.extend([Record(self.state.leadership.leader_epoch, value)])
        self.state.local_end_moved(Offset(self.log.log_end_offset))

    def serve(self, follower: BrokerId, broker_epoch: int, asked: Position, most: int, now_ms: int) -> Response:
        """As broker/fetch/reading.py does."""
        log, state = self.log, self.state
        try:
            state.check_epoch(asked.leader_epoch)
            state.check_leader()
            state.check_follower(follower, knows_epoch=True)
            if asked.last_fetched_epoch >= 0:
                diverging = diverging_epoch(log, asked.last_fetched_epoch, asked.fetch_offset)
                if diverging is not None:
                    return Response(asked, ErrorCode.NONE, diverging)
            if not 0 <= asked.fetch_offset <= log.log_end_offset:
                raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, "not in the log")
            end = Offset(log.log_end_offset)
            state.follower_fetched(
                FollowerFetch(follower, broker_epoch, Offset(asked.fetch_offset), Offset(0), end, now_ms)
            )
        except Refused as refusal:
            return Response(asked, refusal.code)
        self.proposal = state.maybe_expand(follower) or self.proposal
        records = tuple(log.records[asked.fetch_offset : asked.fetch_offset + most])
        return Response(asked, ErrorCode.NONE, None, records, state.high_watermark)

    # -- follower ------------------------------------------------------------------------------------------------------

    def take(self, leader_end: int) -> None:
        """Apply the response that has arrived, as broker/replication/fetcher.py does."""
        response, self.response = self.response, None
        fetch = self.fetch
        if response is None or fetch is None:
            return
        verdict = fetch.judge(response.asked, response.error, response.diverging)
        if verdict is Verdict.APPEND:
            self.log.extend([each for each in response.records if each.epoch <= fetch.leader_epoch])
            self.state.follow_high_watermark(Offset(response.high_watermark), Offset(self.log.log_end_offset))
            fetch.appended(response.high_watermark)
        elif verdict is Verdict.LOOK_UP:
            assert fetch.looked_up(0, leader_end) is None

    def truncate(self) -> None:
        fetch = self.fetch
        if fetch is not None and fetch.truncate_to is not None:
            self.log.truncate(fetch.truncate_to)
            self.state.truncated(Offset(self.log.log_end_offset))
            fetch.truncated()


class ModelController:
    """The authority on leaders and in-sync replicas."""

    def __init__(self) -> None:
        first = Leadership(BROKERS[0], LeaderEpoch(0), 0, BROKERS, BROKERS)
        self.image = Image(first, dict.fromkeys(BROKERS, 1))

    def _decide(self, isr: tuple[BrokerId, ...], *, new_epoch: bool = False) -> None:
        now = self.image.leadership
        up = [each for each in isr if each in self.image.brokers]
        leader = now.leader if now.leader in up else next(iter(up), NO_LEADER)
        moved = new_epoch or leader != now.leader
        epoch = LeaderEpoch(now.leader_epoch + moved)
        self.image.leadership = Leadership(leader, epoch, now.partition_epoch + 1, BROKERS, isr)

    def elect(self, broker_id: BrokerId) -> None:
        """Another leader, though the current one is up: the preferred one, perhaps."""
        now = self.image.leadership
        if broker_id in now.in_sync_replicas and broker_id in self.image.brokers and broker_id != now.leader:
            epoch = LeaderEpoch(now.leader_epoch + 1)
            self.image.leadership = replace(
                now, leader=broker_id, leader_epoch=epoch, partition_epoch=now.partition_epoch + 1
            )

    def lost(self, broker_id: BrokerId) -> None:
        self.image.brokers.pop(broker_id, None)
        isr = self.image.leadership.in_sync_replicas
        self._decide(tuple(each for each in isr if each != broker_id) or isr)

    def restarted(self, broker_id: BrokerId, epoch: int, *, clean: bool) -> bool:
        """Register a broker; whether it is the last that is in sync, and so must have lost nothing."""
        isr = self.image.leadership.in_sync_replicas
        is_last = isr == (broker_id,)
        self.image.brokers[broker_id] = epoch
        if not clean and not is_last:
            isr = tuple(each for each in isr if each != broker_id)
        self._decide(isr, new_epoch=not clean and is_last)
        return is_last

    def alter(self, asker: BrokerId, proposal: IsrProposal) -> ErrorCode:
        now, brokers = self.image.leadership, self.image.brokers
        if proposal.leader_epoch != now.leader_epoch or asker != now.leader:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch != now.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for replica, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True):
            if replica not in brokers or epoch not in (-1, brokers[replica]):
                return ErrorCode.INELIGIBLE_REPLICA
        self._decide(proposal.isr)
        return ErrorCode.NONE
