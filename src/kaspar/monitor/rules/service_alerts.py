"""Alerts on the canary, the monitor, and probed services: HTTP endpoints and certificates."""

from typing import Final

from kaspar.monitor.rules.alert import MONITOR, PROBES, Alert, Group, Severity

_DOCTOR: Final = "kaspar doctor"

CANARY_ALERTS: Final = Group(
    "kaspar-canary",
    "The canary",
    (
        Alert(
            "KasparCanaryUnavailable",
            "kaspar_canary_partition_status == 4 or (kaspar_canary_status == 4 unless on(instance) "
            "kaspar_canary_partition_status)",
            "30s",
            Severity.CRITICAL,
            "Records cannot be written to broker {{ $labels.leader }} or read back",
            "Clients are affected too: for seconds nothing was acknowledged, or acknowledged records could not be "
            "read.",
            "Check the other alerts for this broker.",
            _DOCTOR,
        ),
        Alert(
            "KasparCanaryLosesRecords",
            "sum by (instance) (increase(kaspar_canary_records_lost_total[10m])) > 0",
            "0m",
            Severity.CRITICAL,
            "Acknowledged records were lost",
            "The canary's records were acknowledged with acks=all and are not in the log: other records may be lost "
            "too. Causes are unclean leader elections and disks that lose writes.",
            "Find out which brokers stopped or became leaders at that time.",
            _DOCTOR,
        ),
        Alert(
            "KasparCanaryDoublesRecords",
            "sum by (instance) (increase(kaspar_canary_records_doubled_total[10m]) "
            "+ increase(kaspar_canary_records_out_of_order_total[10m])) > 0",
            "0m",
            Severity.CRITICAL,
            "Records of an idempotent producer were duplicated or reordered",
            "A broker stored a retried record twice, or records in the wrong order.",
            "Save the brokers' logs and report a bug.",
            "kafka-dump-log --files FILE --print-data-log",
        ),
        Alert(
            "KasparCanaryLate",
            "sum by (instance) (increase(kaspar_canary_records_late_total[5m])) > 5",
            "0m",
            Severity.WARNING,
            "Records take longer than canary.late.ms from producer to consumer",
            "Brokers are slow, or leaders are moving.",
            "Compare the canary's latencies by broker.",
            _DOCTOR,
        ),
    ),
)

SERVICE_ALERTS: Final = Group(
    "kaspar-services",
    "Services and certificates",
    (
        Alert(
            "KasparMonitorDown",
            f'up{{job="{MONITOR}"}} == 0',
            "2m",
            Severity.WARNING,
            "The monitor {{ $labels.instance }} does not respond",
            "Groups are not monitored, and the canary is not running.",
            "Restart it.",
            "kaspar status",
        ),
        Alert(
            "KasparServiceDown",
            f'probe_success{{job="{PROBES}"}} == 0',
            "1m",
            Severity.CRITICAL,
            "{{ $labels.instance }} does not respond",
            "The schema registry, the REST proxy, the console or a listener cannot be reached.",
            "Check the end of its log and restart it.",
            "kaspar status",
        ),
        Alert(
            "KasparCertificateExpires",
            "probe_ssl_earliest_cert_expiry - time() < 14 * 24 * 3600",
            "0m",
            Severity.WARNING,
            "The certificate of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
            "After that, clients refuse the connection.",
            "Renew it; brokers and services load a changed file without a restart.",
            "kaspar certs",
        ),
    ),
)
