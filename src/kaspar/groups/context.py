"""What the groups of a shard know besides their log: the settings, the topics of the cluster, and the work in threads.

Settings and topics are replaced as a whole when they change. Work in threads for a group is noted here and not in the
group, since converting a group creates another object.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.metadata_hash import group_hash, topic_hash
from kaspar.groups.topics import NoTopics, TopicsView, TopicView

REMEMBERED_SUBSCRIPTIONS: Final = 1000


class ShardContext:
    __slots__ = (
        "_hashes",
        "_topic_ids",
        "_views",
        "computing",
        "group_configs",
        "resolving",
        "settings",
        "topics",
        "topics_version",
    )

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.group_configs: Mapping[str, Mapping[str, str]] = {}
        """The settings of each group by Kafka's names ("consumer.session.timeout.ms"), as text."""
        self.topics: TopicsView = NoTopics()
        self.topics_version = 0
        """Incremented when topics are created: patterns that were resolved before may match more topics now."""
        self.resolving: set[str] = set()
        """The groups whose patterns are being resolved."""
        self.computing: dict[str, int] = {}
        """The groups whose assignment is being computed, and the epoch that it is for."""
        self._views: dict[str, TopicView | None] = {}
        self._hashes: dict[str, int] = {}
        self._topic_ids: dict[frozenset[str], frozenset[uuid.UUID]] = {}

    # -- topics --------------------------------------------------------------------------------------------------------

    def change_topics(self, topics: TopicsView, changed: Collection[str]) -> None:
        """`changed` are the names of topics that were created, deleted or changed."""
        if any(self.topics.topic(name) is None and topics.topic(name) is not None for name in changed):
            self.topics_version += 1
        for name in changed:
            self._views.pop(name, None)
            self._hashes.pop(name, None)
        self._topic_ids.clear()
        self.topics = topics

    def topic(self, name: str) -> TopicView | None:
        """Look up a topic in `topics`. Cached, because building the racks of thousands of partitions takes time."""
        if name not in self._views:
            self._views[name] = self.topics.topic(name)
        return self._views[name]

    def topic_ids(self, names: frozenset[str]) -> frozenset[uuid.UUID]:
        """The ids of the topics that exist. Cached, because the members of a group usually read the same topics."""
        known = self._topic_ids.get(names)
        if known is None:
            if len(self._topic_ids) == REMEMBERED_SUBSCRIPTIONS:
                self._topic_ids.clear()
            views = map(self.topic, names)
            known = self._topic_ids[names] = frozenset(view.topic_id for view in views if view is not None)
        return known

    def metadata_hash(self, names: Iterable[str]) -> int:
        return group_hash({view.name: self._hash_of(view) for name in names if (view := self.topic(name)) is not None})

    def _hash_of(self, view: TopicView) -> int:
        known = self._hashes.get(view.name)
        if known is None:
            known = self._hashes[view.name] = topic_hash(view)
        return known

    # -- settings ------------------------------------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        settings = self.settings
        if group_id not in self.group_configs:
            return settings.group_consumer_session_timeout_ms
        return self._of_group(
            group_id,
            "consumer.session.timeout.ms",
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        settings = self.settings
        if group_id not in self.group_configs:
            return settings.group_consumer_heartbeat_interval_ms
        return self._of_group(
            group_id,
            "consumer.heartbeat.interval.ms",
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        )

    def assignment_interval_ms(self, group_id: str) -> int:
        settings = self.settings
        if group_id not in self.group_configs:
            return settings.group_consumer_assignment_interval_ms
        return self._of_group(
            group_id,
            "consumer.assignment.interval.ms",
            settings.group_consumer_assignment_interval_ms,
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        )

    def _of_group(self, group_id: str, name: str, of_broker: int, lowest: int, highest: int) -> int:
        """A group's own value, limited to the broker's bounds: they may have been narrowed since it was set."""
        own = self.group_configs[group_id].get(name)
        return of_broker if own is None else min(max(int(own), lowest), highest)

    @property
    def upgrades(self) -> bool:
        return self.settings.group_consumer_migration_policy.lower() in ("upgrade", "bidirectional")

    @property
    def downgrades(self) -> bool:
        return self.settings.group_consumer_migration_policy.lower() in ("downgrade", "bidirectional")
