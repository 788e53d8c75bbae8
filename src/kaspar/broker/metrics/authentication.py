"""Handshakes and log-ins of clients, by listener: Kafka's socket-server-metrics of authentication."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels
from kaspar.broker.metrics.families import SOCKET_SERVER, BrokerFamily, Scrape, listener_family
from kaspar.broker.metrics.view import AuthenticationView, MeterView

_PREFIX: Final = "kafka_server_socket_server_metrics_"


def _metered(name: str, text: str, kind: str) -> tuple[BrokerFamily, BrokerFamily]:
    """The total, and the rate of the last minute. `kind` is the name in AuthenticationView."""

    def meter(authentication: AuthenticationView) -> MeterView:
        found: MeterView = getattr(authentication, kind)
        return found

    start = _PREFIX + name.replace("-", "_")
    return (
        listener_family(
            f"{start}_total",
            Kind.COUNTER,
            text,
            lambda listener: meter(listener.authentication).total,
            f"{name}-total",
        ),
        listener_family(
            f"{start}_rate",
            Kind.GAUGE,
            f"The same in a second, over the last minute: {text[0].lower()}{text[1:]}",
            lambda listener: meter(listener.authentication).per_second(),
            f"{name}-rate",
        ),
    )


def _by_cipher(scrape: Scrape) -> Iterator[Sample]:
    for listener in scrape.broker.listeners():
        for kind, count in sorted(listener.authentication.open_by_kind().items()):
            named = labels(cipher=kind[0], protocol=kind[1], listener=listener.name, networkProcessor=0)
            yield named, count


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


AUTHENTICATION: Final[tuple[BrokerFamily, ...]] = (
    *_metered(
        "successful-authentication",
        "Clients that authenticated, by SASL or, where there is none, by a TLS handshake.",
        "succeeded",
    ),
    listener_family(
        f"{_PREFIX}successful_authentication_no_reauth_total",
        Kind.COUNTER,
        "Those of them that could not authenticate again (KIP-368): by TLS alone, or by a SASL client of before 2.2.",
        lambda listener: listener.authentication.succeeded_without_reauthentication,
        "successful-authentication-no-reauth-total",
    ),
    *_metered("failed-authentication", "Handshakes and log-ins that failed.", "failed"),
    *_metered("successful-reauthentication", "Sessions that went on with a log-in.", "reauthenticated"),
    *_metered(
        "failed-reauthentication",
        "Sessions that ended with a log-in that failed.",
        "failed_to_reauthenticate",
    ),
    listener_family(
        f"{_PREFIX}reauthentication_latency_avg",
        Kind.GAUGE,
        "How long a re-authentication took on average, in the last minute, in ms.",
        lambda listener: _mean(listener.authentication.recent_latencies_ms()),
        "reauthentication-latency-avg",
    ),
    listener_family(
        f"{_PREFIX}reauthentication_latency_max",
        Kind.GAUGE,
        "The longest that one took in the last minute, in ms.",
        lambda listener: max(listener.authentication.recent_latencies_ms(), default=0.0),
        "reauthentication-latency-max",
    ),
    listener_family(
        f"{_PREFIX}expired_connections_killed_count",
        Kind.COUNTER,
        "Connections closed because their session was over and the client had not authenticated again.",
        lambda listener: listener.authentication.expired,
        "expired-connections-killed-count",
    ),
    Family(
        f"{_PREFIX}connections",
        Kind.GAUGE,
        "Open connections over TLS, by what they negotiated.",
        _by_cipher,
        ("cipher", "protocol", "listener", "networkProcessor"),
        f"{SOCKET_SERVER.replace('listener', 'cipher=*,protocol=*,listener', 1)} connections",
    ),
)
