"""Alerts on consumer groups and transactions. Those on groups need the monitor."""

from typing import Final

from kaspar.monitor.rules.alert import Alert, Group, Severity

_DESCRIBE: Final = "kafka-consumer-groups --bootstrap-server BROKERS --describe --group {{ $labels.consumer_group }}"
_BY_GROUP: Final = "by (cluster, consumer_group)"

GROUP_ALERTS: Final = Group(
    "kaspar-groups",
    "Consumer groups and transactions",
    (
        Alert(
            "KasparGroupStopped",
            f"count {_BY_GROUP} (kaspar_consumer_group_partition_status == 4) > 0",
            "1m",
            Severity.CRITICAL,
            "Group {{ $labels.consumer_group }} has stopped on {{ $value }} partitions",
            "Records wait, its offsets do not move, and no member reads these partitions (Burrow's STOP).",
            "Start its members.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupStalled",
            f"count {_BY_GROUP} (kaspar_consumer_group_partition_status == 5) > 0",
            "1m",
            Severity.CRITICAL,
            "Group {{ $labels.consumer_group }} is stuck on {{ $value }} partitions",
            "Members read these partitions and records wait, but the offsets do not move (Burrow's STALL).",
            "Look for a record that its members cannot process, at the committed offset.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupFallsBehind",
            f"count {_BY_GROUP} (kaspar_consumer_group_partition_status == 2) > 0",
            "5m",
            Severity.WARNING,
            "Group {{ $labels.consumer_group }} does not keep up on {{ $value }} partitions",
            "It commits, and its lag grows all the time (Burrow's WARN).",
            "Add members, or make them faster; more members than partitions do not help.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupLagGrows",
            f"min {_BY_GROUP} (deriv(burrow_kafka_consumer_lag_total[15m])) > 0 "
            f"and sum {_BY_GROUP} (burrow_kafka_consumer_lag_total) > 10000",
            "30m",
            Severity.WARNING,
            "The lag of group {{ $labels.consumer_group }} grows by {{ $value }} records per second",
            "It has grown for the last half hour, and is above 10,000 records.",
            "Add members, or make them faster.",
            _DESCRIBE,
        ),
        Alert(
            "KasparHangingTransactions",
            "kafka_server_replicamanager_partitionswithlatetransactionscount > 0",
            "0m",
            Severity.CRITICAL,
            "{{ $value }} partitions of {{ $labels.instance }} have a transaction that hangs",
            "read_committed consumers do not get past it, and compaction stops there.",
            "Find it and end it.",
            "kafka-transactions --bootstrap-server BROKERS find-hanging --broker-id ID",
        ),
    ),
)
