"""The metrics of client quotas. As in Kafka, there are samples only while a quota of the kind is set."""

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from kaspar.base.exposition import Family, Kind, Sample, labels
from kaspar.broker.metrics.families import BrokerFamily, Scrape
from kaspar.broker.metrics.view import QuotaUsageView

_KINDS_WITH: Final = {
    "byte-rate": ("Produce", "Fetch"),
    "request-time": ("Request",),
    "mutation-rate": ("ControllerMutation",),
    "tokens": ("ControllerMutation",),
    "throttle-time": ("Produce", "Fetch", "Request", "ControllerMutation"),
}
_SHARED_BY: Final = "by the user and client id that share the quota (empty: any)."


def _family(kind: str, attribute: str, text: str, read: Callable[[QuotaUsageView], float]) -> BrokerFamily:
    """A metric of the MBean `kafka.server:type=KIND,user=*,client-id=*`. Users are URL-encoded, as in Kafka."""

    def samples(scrape: Scrape) -> Iterable[Sample]:
        for usage in scrape.quota_usage[kind]:
            yield labels(user=quote(usage.user, safe=""), client_id=usage.client_id), read(usage)

    return Family(
        f"kafka_server_{kind.lower()}_{attribute.replace('-', '_')}",
        Kind.GAUGE,
        f"{text}, {_SHARED_BY}",
        samples,
        ("user", "client_id"),
        f"kafka.server:type={kind},user=*,client-id=* {attribute}",
    )


def _by_resource(attribute: str, text: str, read: Callable[[QuotaUsageView], float]) -> BrokerFamily:
    """The same metric as the rules of the JMX exporter name it: one family for all kinds of quotas."""

    def samples(scrape: Scrape) -> Iterable[Sample]:
        for kind in _KINDS_WITH[attribute]:
            for usage in scrape.quota_usage[kind]:
                label_text = labels(resource=kind, user=quote(usage.user, safe=""), clientId=usage.client_id)
                yield label_text, read(usage)

    return Family(
        f"kafka_server_quota_{attribute.replace('-', '_')}",
        Kind.GAUGE,
        f"{text}, by the kind of quota, and {_SHARED_BY}",
        samples,
        ("resource", "user", "clientId"),
        f"kafka.server:type=*,user=*,client-id=* {attribute}",
    )


def _throttle_time(kind: str) -> BrokerFamily:
    return _family(
        kind, "throttle-time", "How long clients were throttled on average, in ms", lambda usage: usage.throttle_time_ms
    )


QUOTAS: Final = (
    _family("Produce", "byte-rate", "Bytes per second of Produce requests", lambda usage: usage.rate),
    _throttle_time("Produce"),
    _family("Fetch", "byte-rate", "Bytes per second of records sent to consumers", lambda usage: usage.rate),
    _throttle_time("Fetch"),
    _family("Request", "request-time", "Percent of the event loop's time", lambda usage: usage.rate),
    _throttle_time("Request"),
    _family(
        "ControllerMutation", "mutation-rate", "Partitions created and deleted per second", lambda usage: usage.rate
    ),
    _family(
        "ControllerMutation", "tokens", "Partitions that may be created and deleted now", lambda usage: usage.tokens
    ),
    _throttle_time("ControllerMutation"),
    _by_resource("byte-rate", "Bytes per second", lambda usage: usage.rate),
    _by_resource("request-time", "Percent of the event loop's time", lambda usage: usage.rate),
    _by_resource("mutation-rate", "Partitions created and deleted per second", lambda usage: usage.rate),
    _by_resource("tokens", "Partitions that may be created and deleted now", lambda usage: usage.tokens),
    _by_resource(
        "throttle-time", "How long clients were throttled on average, in ms", lambda usage: usage.throttle_time_ms
    ),
)
