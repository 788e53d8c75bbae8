"""What the groups of a shard know beside their log: the settings, the topics of the cluster, and what runs elsewhere.

Settings and topics are replaced whole, by the shell, when they change. What runs in a thread on a group's behalf is
remembered here and not in the group: a group that is converted is another object, and the same group.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kaspar.config.broker.groups import GroupSettings
from kaspar.groups.metadata_hash import group_hash, topic_hash
from kaspar.groups.topics import NoTopics, TopicsView

NEVER: Final = -1


class Surroundings:
    __slots__ = (
        "_topic_hashes",
        "computing",
        "group_configs",
        "resolving",
        "settings",
        "topics",
        "version_with_new_topics",
    )

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.group_configs: Mapping[str, Mapping[str, str]] = {}
        """What a group has set for itself, by Kafka's names ("consumer.session.timeout.ms"), in words."""
        self.topics: TopicsView = NoTopics()
        self.version_with_new_topics = NEVER
        """Patterns that were resolved before it may have more to find by now."""
        self.resolving: set[str] = set()
        """The groups whose patterns are being resolved."""
        self.computing: dict[str, int] = {}
        """The groups whose assignment is being computed, and for which epoch."""
        self._topic_hashes: dict[str, int] = {}

    # -- topics --------------------------------------------------------------------------------------------------------

    def change_topics(self, topics: TopicsView, changed: Collection[str]) -> None:
        """`changed` are the names of topics that came, went, or look different now."""
        came = any(self.topics.topic(name) is None and topics.topic(name) is not None for name in changed)
        if came or self.version_with_new_topics == NEVER:
            self.version_with_new_topics = topics.version
        for name in changed:
            self._topic_hashes.pop(name, None)
        self.topics = topics

    def metadata_hash(self, names: Iterable[str]) -> int:
        return group_hash({name: self._hash_of(name) for name in names if self.topics.topic(name) is not None})

    def _hash_of(self, name: str) -> int:
        known = self._topic_hashes.get(name)
        if known is None:
            topic = self.topics.topic(name)
            assert topic is not None
            known = self._topic_hashes[name] = topic_hash(topic)
        return known

    # -- settings ------------------------------------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        settings = self.settings
        return self._of_group(
            group_id,
            "consumer.session.timeout.ms",
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        settings = self.settings
        return self._of_group(
            group_id,
            "consumer.heartbeat.interval.ms",
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        )

    def assignment_interval_ms(self, group_id: str) -> int:
        settings = self.settings
        return self._of_group(
            group_id,
            "consumer.assignment.interval.ms",
            settings.group_consumer_assignment_interval_ms,
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        )

    def _of_group(self, group_id: str, name: str, of_broker: int, lowest: int, highest: int) -> int:
        """A group's own value counts as far as the broker's bounds let it: they may have been narrowed since."""
        configs = self.group_configs.get(group_id)
        own = configs.get(name) if configs else None
        return of_broker if own is None else min(max(int(own), lowest), highest)

    @property
    def upgrades(self) -> bool:
        return self.settings.group_consumer_migration_policy.lower() in ("upgrade", "bidirectional")

    @property
    def downgrades(self) -> bool:
        return self.settings.group_consumer_migration_policy.lower() in ("downgrade", "bidirectional")
