"""The topics that a sub-topology reads and their starting offsets, as options of the data source."""

import json
import re
from collections.abc import Collection, Iterable, Mapping

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kaspar.client.offsets import list_offsets
from kaspar.spark.offsets import SPECIAL_OFFSETS
from kaspar.spark.reading import data_loss
from kaspar.streams.running.topics import matching_topics
from kaspar.streams.topology.plan import InternalSource, SubTopology, source_topics

_TIMESTAMPS = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}


def in_range(
    client: Client,
    offsets: Mapping[TopicPartition, int],
    *,
    unread_topics: Collection[str],
    fail_on_data_loss: bool,
) -> dict[TopicPartition, int]:
    """The offsets that are within the range of their logs. For the others, auto.offset.reset applies.

    `unread_topics` will be read from these offsets; other topics from the offsets of a checkpoint, which may be later.
    Raises DataLost.
    """
    if not offsets:
        return {}
    first = list_offsets(client, dict.fromkeys(offsets, EARLIEST_TIMESTAMP))
    last = list_offsets(client, dict.fromkeys(offsets, LATEST_TIMESTAMP))
    for where, offset in sorted(offsets.items()):
        if where.topic in unread_topics and offset < first[where].offset:
            gone = data_loss.removed(where, offset, data_loss.start_of_log(client, where, first[where].offset))
            otherwise = f"begins {where} where auto.offset.reset says"
            data_loss.report(gone, fail_on_data_loss=fail_on_data_loss, otherwise=otherwise)
    return {where: offset for where, offset in offsets.items() if first[where].offset <= offset <= last[where].offset}


class Sources:
    """The sources of one sub-topology."""

    def __init__(self, plan: SubTopology, application_id: str, default_reset: str) -> None:
        self._application_id = application_id
        self._patterns = tuple(source.pattern for source in plan.sources if source.pattern is not None)
        self._resets: dict[str, str] = {}
        for source in plan.sources:
            reset = "earliest" if isinstance(source, InternalSource) else source.offset_reset or default_reset
            for topic in source_topics(source, application_id):
                self._resets[topic] = reset
        self._default_reset = default_reset

    @property
    def has_patterns(self) -> bool:
        return bool(self._patterns)

    @property
    def are_several(self) -> bool:
        """Whether there may be more than one topic."""
        return self.has_patterns or len(self._resets) > 1

    def topics(self, existing: Iterable[str]) -> tuple[str, ...]:
        """All topics that the sub-topology reads, sorted."""
        names = {*self._resets}
        for pattern in self._patterns:
            names |= {*matching_topics(existing, pattern, self._application_id)}
        return tuple(sorted(names))

    def unset(self, counts: Mapping[str, int], offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The partitions without an offset, with the ListOffsets timestamp for their auto.offset.reset."""
        return {
            where: _TIMESTAMPS[self._resets.get(topic, self._default_reset)]
            for topic in self.topics(counts)
            for partition in range(counts[topic])
            if (where := TopicPartition(topic, partition)) not in offsets
        }

    def options(self, counts: Mapping[str, int], committed: Mapping[TopicPartition, int]) -> dict[str, str]:
        """The options of the data source. `committed` are the offsets of the program's group, which are used if there
        is no checkpoint yet."""
        return {**self._subscription(), "startingOffsets": self._starting(counts, committed)}

    def _subscription(self) -> dict[str, str]:
        if not self._patterns:
            return {"subscribe": ",".join(sorted(self._resets))}
        own = re.escape(self._application_id)
        matching = "|".join(f"(?:{pattern})" for pattern in self._patterns)
        choices = [re.escape(topic) for topic in sorted(self._resets)]
        choices.append(rf"(?!__)(?!{own}-.*-(?:changelog|repartition)$)(?:{matching})")
        return {"subscribePattern": "|".join(f"(?:{choice})" for choice in choices)}

    def _starting(self, counts: Mapping[str, int], committed: Mapping[TopicPartition, int]) -> str:
        topics = self.topics(counts)
        resets = {topic: self._resets.get(topic, self._default_reset) for topic in topics}
        given = {where: offset for where, offset in committed.items() if where.topic in resets}
        if not given and len({*resets.values()}) == 1:
            return next(iter(resets.values()))
        starting: dict[str, object] = {}
        for topic, reset in resets.items():
            offsets = {
                str(partition): given.get(TopicPartition(topic, partition), SPECIAL_OFFSETS[reset])
                for partition in range(counts[topic])
            }
            starting[topic] = offsets if any(offset >= 0 for offset in offsets.values()) else reset
        return json.dumps(starting)
