"""The dashboards: cluster overview, broker, topics, groups and their lag, canary, and services."""

from typing import Final

from kaspar.monitor.rules.alert import BROKERS, PROBES
from kaspar.monitor.rules.dashboard import Dashboard, Panel, Query, Row, Variable

_TOPICS: Final = "kafka_server_brokertopicmetrics_"
_REPLICAS: Final = "kafka_server_replicamanager_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_REQUESTS: Final = "kafka_network_requestmetrics_"

_INSTANCE: Final = Variable("instance", f'label_values(up{{job="{BROKERS}"}}, instance)')
_TOPIC: Final = Variable("topic", f"label_values({_TOPICS}messagesin_total, topic)")
_GROUP: Final = Variable("group", "label_values(burrow_kafka_consumer_status, consumer_group)")


def _stat(
    title: str, expression: str, *, above: float | None = None, below: float | None = None, unit: str = "short"
) -> Panel:
    return Panel(title, (Query(expression),), unit, "stat", above, below, width=4)


def _chart(title: str, unit: str, *queries: tuple[str, str], width: int = 8) -> Panel:
    return Panel(title, tuple(Query(*query) for query in queries), unit, width=width)


def _rate(counter: str, by: str, labels: str) -> str:
    return f"sum by ({by}) (rate({counter}{{{labels}}}[1m]))"


OVERVIEW: Final = Dashboard(
    "kaspar-overview",
    "Kaspar: cluster",
    (
        Row(
            "Health",
            (
                _stat("Brokers up", f'sum(up{{job="{BROKERS}"}})', below=1),
                _stat("Controllers", f"sum({_CONTROLLER}activecontrollercount)", below=1),
                _stat("Offline partitions", f"sum({_CONTROLLER}offlinepartitionscount)", above=1),
                _stat("Under-replicated", f"sum({_REPLICAS}underreplicatedpartitions)", above=1),
                _stat("Under min.insync.replicas", f"sum({_REPLICAS}underminisrpartitioncount)", above=1),
                _stat("Failed log directories", "sum(kafka_log_logmanager_offlinelogdirectorycount)", above=1),
            ),
        ),
        Row(
            "Traffic",
            (
                _chart("Bytes in", "Bps", (_rate(f"{_TOPICS}bytesin_total", "instance", 'topic=""'), "{{instance}}")),
                _chart("Bytes out", "Bps", (_rate(f"{_TOPICS}bytesout_total", "instance", 'topic=""'), "{{instance}}")),
                _chart(
                    "Records in", "ops", (_rate(f"{_TOPICS}messagesin_total", "instance", 'topic=""'), "{{instance}}")
                ),
                _chart(
                    "Requests", "ops", (_rate(f"{_REQUESTS}requests_total", "request", ""), "{{request}}"), width=12
                ),
                _chart(
                    "Produce, 99 %",
                    "ms",
                    (f'{_REQUESTS}totaltimems{{request="Produce",quantile="0.99"}}', "{{instance}}"),
                    width=12,
                ),
            ),
        ),
        Row(
            "Partitions and space",
            (
                _chart("Partitions", "short", (f"{_REPLICAS}partitioncount", "{{instance}}")),
                _chart("Leaders", "short", (f"{_REPLICAS}leadercount", "{{instance}}")),
                _chart(
                    "Free space",
                    "bytes",
                    ("min by (instance) (kaspar_log_directory_free_bytes)", "{{instance}}"),
                ),
            ),
        ),
    ),
)

_AT: Final = 'instance=~"$instance"'
BROKER: Final = Dashboard(
    "kaspar-broker",
    "Kaspar: brokers",
    (
        Row(
            "Load",
            (
                _chart(
                    "Idle",
                    "percentunit",
                    (
                        f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{{{_AT}}}",
                        "{{instance}} requests",
                    ),
                    (
                        f"kafka_network_socketserver_networkprocessoravgidle_percent{{{_AT}}}",
                        "{{instance}} network",
                    ),
                ),
                _chart("CPU", "percentunit", (f"rate(process_cpu_seconds_total{{{_AT}}}[1m])", "{{instance}}")),
                _chart("Memory", "bytes", (f"process_resident_memory_bytes{{{_AT}}}", "{{instance}}")),
                _chart(
                    "Connections",
                    "short",
                    (
                        f"sum by (instance) (kafka_server_socket_server_metrics_connection_count{{{_AT}}})",
                        "{{instance}}",
                    ),
                ),
                _chart(
                    "Longest stall of the event loop",
                    "s",
                    (f"kaspar_loop_longest_recent_stall_seconds{{{_AT}}}", "{{instance}}"),
                ),
                _chart("Open files", "short", (f"process_open_fds{{{_AT}}}", "{{instance}}")),
            ),
        ),
        Row(
            "Where the time of requests goes (99 %)",
            tuple(
                _chart(
                    title,
                    "ms",
                    (f'{_REQUESTS}{part}timems{{{_AT},quantile="0.99",request=~"Produce|Fetch"}}', "{{request}}"),
                )
                for title, part in (
                    ("Total", "total"),
                    ("Local: disk and event loop", "local"),
                    ("Remote: followers, new records", "remote"),
                    ("Throttled", "throttle"),
                    ("Queued", "requestqueue"),
                    ("Sending", "responsesend"),
                )
            ),
        ),
        Row(
            "Replication and logs",
            (
                _chart(
                    "In-sync replicas",
                    "ops",
                    (f"rate({_REPLICAS}isrshrinks_total{{{_AT}}}[1m])", "{{instance}} shrinks"),
                    (f"rate({_REPLICAS}isrexpands_total{{{_AT}}}[1m])", "{{instance}} expands"),
                ),
                _chart(
                    "Replica lag",
                    "short",
                    (f"kafka_server_replicafetchermanager_maxlag{{{_AT}}}", "{{instance}}"),
                ),
                _chart(
                    "Log flush, 99 %",
                    "ms",
                    (f'kafka_log_logflushstats_logflushrateandtimems{{{_AT},quantile="0.99"}}', "{{instance}}"),
                ),
                _chart(
                    "Dirtiest log",
                    "percent",
                    (f"kafka_log_logcleanermanager_max_dirty_percent{{{_AT}}}", "{{instance}}"),
                ),
                _chart("Free space", "bytes", (f"kaspar_log_directory_free_bytes{{{_AT}}}", "{{logDirectory}}")),
                _chart(
                    "Failed log-ins",
                    "ops",
                    (
                        "sum by (instance) (rate(kafka_server_socket_server_metrics_failed_authentication_total"
                        f"{{{_AT}}}[1m]))",
                        "{{instance}}",
                    ),
                ),
            ),
        ),
    ),
    (_INSTANCE,),
)

_OF_TOPIC: Final = 'topic=~"$topic",topic!=""'
TOPICS: Final = Dashboard(
    "kaspar-topics",
    "Kaspar: topics",
    (
        Row(
            "Traffic",
            tuple(
                _chart(title, unit, (_rate(f"{_TOPICS}{counter}_total", "topic", _OF_TOPIC), "{{topic}}"))
                for title, unit, counter in (
                    ("Records in", "ops", "messagesin"),
                    ("Bytes in", "Bps", "bytesin"),
                    ("Bytes out", "Bps", "bytesout"),
                    ("Produce requests", "ops", "totalproducerequests"),
                    ("Fetch requests", "ops", "totalfetchrequests"),
                    ("Failed produce requests", "ops", "failedproducerequests"),
                )
            ),
        ),
        Row(
            "Logs",
            (
                _chart("Size", "bytes", (f"sum by (topic) (kafka_log_log_size{{{_OF_TOPIC}}})", "{{topic}}")),
                _chart(
                    "Segments", "short", (f"sum by (topic) (kafka_log_log_numlogsegments{{{_OF_TOPIC}}})", "{{topic}}")
                ),
                _chart(
                    "Under-replicated partitions",
                    "short",
                    (f"sum by (topic) (kafka_cluster_partition_underreplicated{{{_OF_TOPIC}}})", "{{topic}}"),
                ),
            ),
        ),
    ),
    (_TOPIC,),
)

_OF_GROUP: Final = 'consumer_group=~"$group"'
GROUPS: Final = Dashboard(
    "kaspar-groups",
    "Kaspar: groups and lag",
    (
        Row(
            "Groups",
            (
                _stat("Groups", "count(burrow_kafka_consumer_status)"),
                _stat("Not OK", "count(burrow_kafka_consumer_status > 1) or vector(0)", above=1),
                _stat("Largest lag", "max(burrow_kafka_consumer_lag_total)"),
                _stat("Largest lag in time", "max(kaspar_consumer_group_max_lag_seconds)", unit="s"),
                _stat("Hanging transactions", f"sum({_REPLICAS}partitionswithlatetransactionscount)", above=1),
                _stat("Findings of the doctor", 'sum(kaspar_doctor_findings{severity!="note"})', above=1),
            ),
        ),
        Row(
            "Lag",
            (
                _chart("Records", "short", (f"burrow_kafka_consumer_lag_total{{{_OF_GROUP}}}", "{{consumer_group}}")),
                _chart("Time", "s", (f"kaspar_consumer_group_max_lag_seconds{{{_OF_GROUP}}}", "{{consumer_group}}")),
                _chart(
                    "Status: 1 OK, 2 WARN, 3 ERR",
                    "short",
                    (f"burrow_kafka_consumer_status{{{_OF_GROUP}}}", "{{consumer_group}}"),
                ),
                _chart(
                    "Records by partition",
                    "short",
                    (
                        f"burrow_kafka_consumer_partition_lag{{{_OF_GROUP}}}",
                        "{{consumer_group}} {{topic}}-{{partition}}",
                    ),
                    width=12,
                ),
                _chart(
                    "Committed per second",
                    "ops",
                    (
                        f"sum by (consumer_group) (rate(burrow_kafka_consumer_current_offset{{{_OF_GROUP}}}[1m]))",
                        "{{consumer_group}}",
                    ),
                    width=12,
                ),
            ),
        ),
    ),
    (_GROUP,),
)


def _canary_latency(what: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f'max by (leader) (kaspar_canary_{what}_latency_ms{{quantile="{quantile}"}})',
            f"broker {{{{leader}}}} {quantile}",
        )
        for quantile in ("0.5", "0.99")
    )


CANARY: Final = Dashboard(
    "kaspar-canary",
    "Kaspar: canary",
    (
        Row(
            "What clients get",
            (
                _stat("Status: 1 OK, 2 late, 3 losing, 4 unavailable", "max(kaspar_canary_status)", above=2),
                _stat(
                    "Produce availability",
                    "min(kmf_services_produce_service_produce_availability_avg)",
                    below=0.999,
                    unit="percentunit",
                ),
                _stat(
                    "Consume availability",
                    "min(kmf_services_consume_service_consume_availability_avg)",
                    below=0.999,
                    unit="percentunit",
                ),
                _stat("Lost", "sum(kaspar_canary_records_lost_total)", above=1),
                _stat("Doubled", "sum(kaspar_canary_records_doubled_total)", above=1),
                _stat("Late", "sum(kaspar_canary_records_late_total)", above=1),
            ),
        ),
        Row(
            "By broker",
            (
                _chart("Until acknowledged", "ms", *_canary_latency("produce")),
                _chart("Until read", "ms", *_canary_latency("end_to_end")),
                _chart(
                    "Produce availability",
                    "percentunit",
                    ("min by (leader) (kaspar_canary_produce_availability)", "broker {{leader}}"),
                ),
            ),
        ),
    ),
)

SERVICES: Final = Dashboard(
    "kaspar-services",
    "Kaspar: services",
    (
        Row(
            "Schema registry, REST proxy, console and listeners",
            (
                _chart("Reachable", "short", (f'probe_success{{job="{PROBES}"}}', "{{instance}}")),
                _chart("Response time", "s", (f'probe_duration_seconds{{job="{PROBES}"}}', "{{instance}}")),
                _chart(
                    "Rounds of the monitor",
                    "s",
                    ("kaspar_monitor_round_duration_seconds", "{{instance}}"),
                ),
            ),
        ),
    ),
)

DASHBOARDS: Final = (OVERVIEW, BROKER, TOPICS, GROUPS, CANARY, SERVICES)
