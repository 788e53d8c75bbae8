"""Rounds for tests, made of a few numbers."""

from collections.abc import Mapping, Sequence

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import GroupOffset
from kaspar.client.admin.groups import GroupListing, GroupType
from kaspar.monitor.lag.evaluation import UNKNOWN_TIMES, EvaluationRules, Evaluator, RecordTimes
from kaspar.monitor.lag.reading import OffsetsRead
from kaspar.monitor.lag.rules import Thresholds
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.views import Commit, GroupLag, PartitionLag

NOW_MS = 1_700_000_000_000
INTERVAL_MS = 10_000
INTERVALS = 10
WINDOW_MS = INTERVALS * INTERVAL_MS
DAY_MS = 86_400_000
THRESHOLDS = Thresholds(INTERVALS, WINDOW_MS, minimum_complete=1.0)
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def commits(*offsets_and_lags: tuple[int, int], every_ms: int = INTERVAL_MS) -> list[Commit]:
    """One in each round, the last of them now."""
    last = len(offsets_and_lags) - 1
    return [
        Commit(offset, NOW_MS - (last - number) * every_ms, lag, lag)
        for number, (offset, lag) in enumerate(offsets_and_lags)
    ]


def new_evaluator(
    *, minimum_complete: float = 1.0, min_distance_ms: int = 0, expire_group_ms: int = DAY_MS
) -> Evaluator:
    thresholds = Thresholds(INTERVALS, WINDOW_MS, minimum_complete)
    return Evaluator(EvaluationRules(thresholds, min_distance_ms, expire_group_ms))


def listing(group: str, state: str = "Stable") -> GroupListing:
    return GroupListing(group, "consumer", state, GroupType.CLASSIC)


class Rounds:
    """Evaluates one group, `g`, round after round."""

    def __init__(self, evaluator: Evaluator | None = None) -> None:
        self.evaluator = evaluator or new_evaluator()
        self.now_ms = NOW_MS

    def read(
        self,
        offsets: Mapping[TopicPartition, int] | None,
        ends: Mapping[TopicPartition, int | tuple[int, int]],
        *,
        state: str = "Stable",
        gone: Sequence[TopicPartition] = (),
    ) -> OffsetsRead:
        """None for offsets: the coordinator did not respond."""
        groups = {"g": listing("g", state)}
        committed = {} if offsets is None else {"g": _committed(offsets)}
        pairs = {where: end if isinstance(end, tuple) else (end, end) for where, end in ends.items()}
        return OffsetsRead(
            self.now_ms,
            groups,
            lists_all_groups=True,
            commits=committed,
            ends={where: Ends(*pair) for where, pair in pairs.items()},
            gone=frozenset(gone),
        )

    def evaluate(self, read: OffsetsRead, times: RecordTimes = UNKNOWN_TIMES) -> GroupLag | None:
        self.evaluator.observe(read)
        found = self.evaluator.evaluate(read, times).get("g")
        self.now_ms += INTERVAL_MS
        return found

    def partition(
        self, offset: int, end: int | tuple[int, int], *, state: str = "Stable", times: RecordTimes = UNKNOWN_TIMES
    ) -> PartitionLag:
        """One round of a group with one partition."""
        group = self.evaluate(self.read({T0: offset}, {T0: end}, state=state), times)
        assert group is not None
        (partition,) = group.partitions
        return partition


def _committed(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, GroupOffset]:
    return {where: GroupOffset(offset, None, "") for where, offset in offsets.items()}
