"""The subscriptions in the cluster's settings: which clients push which metrics, and how often. Pure."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from kaspar.base.errors import Refused
from kaspar.base.ids import uuid_to_text
from kaspar.base.log import get_log
from kaspar.config import ClientMetricsConfig
from kaspar.config.resources import Pattern, match_patterns
from kaspar.metadata.image import Configs

log = get_log(__name__)

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class ClientAttributes:
    """The attributes that `match` can use, and that distinguish clients on the metrics page."""

    client_instance_id: uuid.UUID
    client_id: str | None
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str
    principal: str

    def matches(self, patterns: Mapping[str, Pattern]) -> bool:
        for name, pattern in patterns.items():
            value = getattr(self, name)
            if isinstance(value, uuid.UUID):
                value = uuid_to_text(value)
            if value is None or pattern.fullmatch(value) is None:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What one client is asked to push."""

    metrics: tuple[str, ...]
    """Prefixes of names; `*` alone for all metrics."""
    interval_ms: int
    id: int

    def includes(self, metric: str) -> bool:
        return self.metrics == (ALL_METRICS,) or metric.startswith(self.metrics)


@dataclass(frozen=True, slots=True)
class Subscription:
    metrics: frozenset[str]
    interval_ms: int
    patterns: Mapping[str, Pattern]

    @classmethod
    def of(cls, configs: Configs) -> "Subscription":
        """Parse a subscription. Raises Refused for a pattern that only Java supports, which a cluster migrated from
        Kafka may have.
        """
        values = {name: setting.parse(configs[name]) for name, setting in _DECLARED.items() if name in configs}
        return cls(
            frozenset(values.get("metrics", ())),
            values.get("interval.ms", DEFAULT_INTERVAL_MS),
            match_patterns(values.get("match", ())),
        )


_DECLARED: Final = ClientMetricsConfig.declared


class Subscriptions:
    """All subscriptions of the cluster. `version` counts their changes."""

    def __init__(self) -> None:
        self.version = 0
        self._configs: Mapping[str, Configs] = {}
        self._all: tuple[Subscription, ...] = ()

    def update(self, configs: Mapping[str, Configs]) -> None:
        if configs is self._configs:
            return
        if configs != self._configs:
            self.version += 1
            self._all = tuple(_usable(configs))
        self._configs = configs

    def of(self, client: ClientAttributes) -> Subscribed:
        matching = [each for each in self._all if client.matches(each.patterns)]
        metrics: frozenset[str] = frozenset().union(*(each.metrics for each in matching))
        if ALL_METRICS in metrics:
            metrics = frozenset({ALL_METRICS})
        interval_ms = min((DEFAULT_INTERVAL_MS, *(each.interval_ms for each in matching)))
        ordered = tuple(sorted(metrics))
        return Subscribed(ordered, interval_ms, _subscription_id(ordered, interval_ms, client.client_instance_id))


def _usable(configs: Mapping[str, Configs]) -> list[Subscription]:
    usable = []
    for name, values in configs.items():
        try:
            usable.append(Subscription.of(values))
        except Refused as refusal:
            log.warning("a client-metrics subscription is not used", subscription=name, problem=refusal.message)
    return usable


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, client: uuid.UUID) -> int:
    """The id of a subscription, like Kafka's computeSubscriptionId. Every broker gives a client the same id for the
    same subscription, so that the client can switch brokers. Kafka's order of several metrics is that of a hash table;
    here they are sorted.
    """
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    high_low = (client.int >> 64) ^ (client.int & 0xFFFF_FFFF_FFFF_FFFF)
    unsigned = checksum ^ (high_low >> 32) ^ (high_low & 0xFFFF_FFFF)
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned
