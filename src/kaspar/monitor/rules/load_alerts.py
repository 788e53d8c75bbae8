"""Alerts on requests, threads and the event loop."""

from typing import Final

from kaspar.monitor.rules.alert import Alert, Group, Severity

_CONNECTIONS: Final = "kafka-configs --bootstrap-server BROKERS --describe --entity-type clients"

LOAD_ALERTS: Final = Group(
    "kaspar-load",
    "Requests and load",
    (
        Alert(
            "KasparProduceSlow",
            'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} > 1000',
            "5m",
            Severity.WARNING,
            "Produce requests to {{ $labels.instance }} take {{ $value }} ms",
            "One of a hundred takes longer. The time in parts says why: local is the disk or the event loop, remote is "
            "waiting for followers (acks=all), throttle is a quota.",
            "Compare kafka_network_requestmetrics_localtimems, _remotetimems and _throttletimems.",
            _CONNECTIONS,
        ),
        Alert(
            "KasparRequestHandlersBusy",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent < 0.2",
            "10m",
            Severity.WARNING,
            "Broker {{ $labels.instance }} is busy: {{ $value | humanizePercentage }} idle",
            "The thread that serves requests (in Apache Kafka: the request handlers) has little room left.",
            "Spread leaders over brokers, let producers batch more, or set quotas for clients that send too much.",
            _CONNECTIONS,
            is_replayed=True,
        ),
        Alert(
            "KasparNetworkBusy",
            "kafka_network_socketserver_networkprocessoravgidle_percent < 0.2",
            "10m",
            Severity.WARNING,
            "The network threads of {{ $labels.instance }} are busy: {{ $value | humanizePercentage }} idle",
            "Many connections or much data. On Kaspar it is the same thread as that of requests.",
            "Look for clients that open connections again and again, and for large responses.",
            _CONNECTIONS,
            is_replayed=True,
        ),
        Alert(
            "KasparEventLoopStalled",
            "kaspar_loop_longest_recent_stall_seconds > 0.5",
            "0m",
            Severity.WARNING,
            "Broker {{ $labels.instance }} stood still for {{ $value }} s",
            "All clients waited meanwhile: the process was paused, swapped out, or short of CPU, or a disk hung.",
            "Check the machine's memory, CPU and disk; long pauses cost the broker its session.",
            "kaspar doctor",
        ),
        Alert(
            "KasparClockSkew",
            "abs(kaspar_time_seconds - timestamp(kaspar_time_seconds)) > 2",
            "1m",
            Severity.WARNING,
            "The clock of {{ $labels.instance }} is {{ $value }} s apart from Prometheus'",
            "Retention, timestamps and log-ins go by the clock.",
            "Check the time synchronisation (chrony, systemd-timesyncd) of the machine.",
            "timedatectl status",
        ),
        Alert(
            "KasparAuthenticationFailures",
            "sum by (instance) (increase(kafka_server_socket_server_metrics_failed_authentication_total[5m])) > 10",
            "0m",
            Severity.WARNING,
            "{{ $value }} log-ins failed on {{ $labels.instance }} within five minutes",
            "A client has a wrong or an expired credential, or somebody guesses passwords.",
            "kafka-authorizer.log names addresses and users.",
            "kaspar user list",
        ),
    ),
)
