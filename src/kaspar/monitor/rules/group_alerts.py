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
            "Records are waiting, its offsets do not move, and no member reads these partitions (Burrow's STOP).",
            "Start its members.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupStalled",
            f"count {_BY_GROUP} (kaspar_consumer_group_partition_status == 5) > 0",
            "1m",
            Severity.CRITICAL,
            "Group {{ $labels.consumer_group }} is stuck on {{ $value }} partitions",
            "Members are assigned these partitions and records are waiting, but the offsets do not move (Burrow's "
            "STALL).",
            "Check whether its members can process the record at the committed offset.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupFallsBehind",
            f"count {_BY_GROUP} (kaspar_consumer_group_partition_status == 2) > 0",
            "5m",
            Severity.WARNING,
            "Group {{ $labels.consumer_group }} is falling behind on {{ $value }} partitions",
            "It commits, but its lag keeps growing (Burrow's WARN).",
            "Add members, up to the number of partitions, or speed them up.",
            _DESCRIBE,
        ),
        Alert(
            "KasparGroupLagGrows",
            f"min {_BY_GROUP} (deriv(burrow_kafka_consumer_lag_total[15m])) > 0 "
            f"and sum {_BY_GROUP} (burrow_kafka_consumer_lag_total) > 10000",
            "30m",
            Severity.WARNING,
            "The lag of group {{ $labels.consumer_group }} grows by {{ $value }} records per second",
            "It has been growing for half an hour and is above 10,000 records.",
            "Add members, or speed them up.",
            _DESCRIBE,
        ),
        Alert(
            "KasparHangingTransactions",
            "kafka_server_replicamanager_partitionswithlatetransactionscount > 0",
            "0m",
            Severity.CRITICAL,
            "{{ $value }} partitions of {{ $labels.instance }} have a hanging transaction",
            "read_committed consumers and compaction are stuck behind it.",
            "Find and abort it.",
            "kafka-transactions --bootstrap-server BROKERS find-hanging --broker-id ID",
        ),
    ),
)
