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
            "One in a hundred takes longer. The breakdown shows the cause: local is the disk or the event loop, "
            "remote is waiting for followers (acks=all), throttle is a quota.",
            "Compare kafka_network_requestmetrics_localtimems, _remotetimems and _throttletimems.",
            _CONNECTIONS,
        ),
        Alert(
            "KasparRequestHandlersBusy",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent < 0.2",
            "10m",
            Severity.WARNING,
            "Broker {{ $labels.instance }} is busy: {{ $value | humanizePercentage }} idle",
            "The thread that serves requests (in Apache Kafka: the request handlers) has little idle time left.",
            "Spread leaders over the brokers, let producers batch more, or set quotas for clients that send too much.",
            _CONNECTIONS,
            is_replayed=True,
        ),
        Alert(
            "KasparNetworkBusy",
            "kafka_network_socketserver_networkprocessoravgidle_percent < 0.2",
            "10m",
            Severity.WARNING,
            "The network threads of {{ $labels.instance }} are busy: {{ $value | humanizePercentage }} idle",
            "There are many connections or much traffic. In Kaspar the same thread also serves requests.",
            "Check for clients that keep reconnecting, and for large responses.",
            _CONNECTIONS,
            is_replayed=True,
        ),
        Alert(
            "KasparEventLoopStalled",
            "kaspar_loop_longest_recent_stall_seconds > 0.5",
            "0m",
            Severity.WARNING,
            "The event loop of {{ $labels.instance }} stalled for {{ $value }} s",
            "All clients had to wait: the process was paused, swapped out or short of CPU, or a disk hung.",
            "Check the machine's memory, CPU and disk; after a long pause the broker loses its session.",
            "kaspar doctor",
        ),
        Alert(
            "KasparClockSkew",
            "abs(kaspar_time_seconds - timestamp(kaspar_time_seconds)) > 2",
            "1m",
            Severity.WARNING,
            "The clock of {{ $labels.instance }} is {{ $value }} s off from that of Prometheus",
            "Retention, timestamps and authentication depend on the clock.",
            "Check the time synchronisation (chrony, systemd-timesyncd) of the machine.",
            "timedatectl status",
        ),
        Alert(
            "KasparAuthenticationFailures",
            "sum by (instance) (increase(kafka_server_socket_server_metrics_failed_authentication_total[5m])) > 10",
            "0m",
            Severity.WARNING,
            "{{ $value }} authentication failures on {{ $labels.instance }} within five minutes",
            "A client has wrong or expired credentials, or someone is guessing passwords.",
            "kafka-authorizer.log has the addresses and users.",
            "kaspar user list",
        ),
    ),
)
