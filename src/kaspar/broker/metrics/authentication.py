"""TLS handshakes and SASL authentications by listener: the authentication metrics of Kafka's socket-server-metrics."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels
from kaspar.broker.metrics.families import SOCKET_SERVER, BrokerFamily, Scrape, listener_family
from kaspar.broker.metrics.view import AuthenticationView, MeterView

_PREFIX: Final = "kafka_server_socket_server_metrics_"


def _metered(name: str, text: str, kind: str) -> tuple[BrokerFamily, BrokerFamily]:
    """The total, and the rate over the last minute. `kind` is the name in AuthenticationView."""

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
            f"Rate per second, over the last minute, of: {text[0].lower()}{text[1:]}",
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
        "Clients that authenticated but cannot re-authenticate (KIP-368): with TLS only, or with a SASL client "
        "older than 2.2.",
        lambda listener: listener.authentication.succeeded_without_reauthentication,
        "successful-authentication-no-reauth-total",
    ),
    *_metered("failed-authentication", "Failed TLS handshakes and SASL authentications.", "failed"),
    *_metered("successful-reauthentication", "Successful re-authentications.", "reauthenticated"),
    *_metered(
        "failed-reauthentication",
        "Failed re-authentications.",
        "failed_to_reauthenticate",
    ),
    listener_family(
        f"{_PREFIX}reauthentication_latency_avg",
        Kind.GAUGE,
        "Average duration of re-authentications in the last minute, in ms.",
        lambda listener: _mean(listener.authentication.recent_latencies_ms()),
        "reauthentication-latency-avg",
    ),
    listener_family(
        f"{_PREFIX}reauthentication_latency_max",
        Kind.GAUGE,
        "Maximum duration of re-authentications in the last minute, in ms.",
        lambda listener: max(listener.authentication.recent_latencies_ms(), default=0.0),
        "reauthentication-latency-max",
    ),
    listener_family(
        f"{_PREFIX}expired_connections_killed_count",
        Kind.COUNTER,
        "Connections closed because their session expired without re-authentication.",
        lambda listener: listener.authentication.expired,
        "expired-connections-killed-count",
    ),
    Family(
        f"{_PREFIX}connections",
        Kind.GAUGE,
        "Open TLS connections, by protocol and cipher.",
        _by_cipher,
        ("cipher", "protocol", "listener", "networkProcessor"),
        f"{SOCKET_SERVER.replace('listener', 'cipher=*,protocol=*,listener', 1)} connections",
    ),
)
