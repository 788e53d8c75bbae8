"""Alerts on disks, log directories and the log cleaner."""

from typing import Final

from kaspar.monitor.rules.alert import Alert, Group, Severity

_PER_DIRECTORY: Final = "kafka-log-dirs --bootstrap-server BROKERS --describe"

STORAGE_ALERTS: Final = Group(
    "kaspar-storage",
    "Disks and logs",
    (
        Alert(
            "KasparLogDirectoryOffline",
            "kafka_log_logmanager_offlinelogdirectorycount > 0",
            "0m",
            Severity.CRITICAL,
            "{{ $value }} log directories of {{ $labels.instance }} have failed",
            "The broker got an I/O error from the directory and stopped using it; its replicas are offline.",
            "Repair or replace the disk, then restart the broker, which copies the replicas again.",
            _PER_DIRECTORY,
        ),
        Alert(
            "KasparDiskFullSoon",
            "predict_linear(kaspar_log_directory_free_bytes[1h], 24 * 3600) < 0 "
            "and kaspar_log_directory_free_bytes < 0.5 * kaspar_log_directory_total_bytes",
            "15m",
            Severity.WARNING,
            "{{ $labels.logDirectory }} of {{ $labels.instance }} will be full within a day",
            "At the rate of the last hour the disk will be full within 24 hours. A full disk rejects all records until "
            "there is space.",
            "Shorten the retention of the largest topics, move replicas, or add space.",
            _PER_DIRECTORY,
        ),
        Alert(
            "KasparDiskAlmostFull",
            "kaspar_log_directory_free_bytes < 0.1 * kaspar_log_directory_total_bytes",
            "5m",
            Severity.CRITICAL,
            "{{ $labels.logDirectory }} of {{ $labels.instance }} has less than 10 % left",
            "A full disk rejects all records until there is space.",
            "Shorten the retention of the largest topics, move replicas, or add space.",
            _PER_DIRECTORY,
        ),
        Alert(
            "KasparLogCleanerDead",
            "kafka_log_logcleaner_deadthreadcount > 0",
            "0m",
            Severity.CRITICAL,
            "The log cleaner of {{ $labels.instance }} has died",
            "Compacted topics grow without bound, __consumer_offsets among them.",
            "Restart the broker, and report the error in log-cleaner.log.",
            _PER_DIRECTORY,
            is_replayed=True,
        ),
        Alert(
            "KasparLogCleanerLate",
            "kafka_log_logcleanermanager_time_since_last_run_ms > 15 * 60 * 1000",
            "5m",
            Severity.WARNING,
            "The log cleaner of {{ $labels.instance }} has not run for {{ $value }} ms",
            "It has been cleaning one log all this time, or it hangs.",
            "Check log-cleaner.log; with more threads (log.cleaner.threads) small logs do not wait for large ones.",
            "kafka-configs --bootstrap-server BROKERS --alter --entity-type brokers --entity-default "
            "--add-config log.cleaner.threads=2",
            is_replayed=True,
        ),
        Alert(
            "KasparUncleanablePartitions",
            "sum by (instance, logDirectory) (kafka_log_logcleanermanager_uncleanable_partitions_count) > 0",
            "0m",
            Severity.WARNING,
            "{{ $value }} partitions in {{ $labels.logDirectory }} of {{ $labels.instance }} cannot be cleaned",
            "Their logs are damaged and grow without bound.",
            "log-cleaner.log names them. If another replica is in sync, move the damaged one away and back.",
            "kafka-reassign-partitions --bootstrap-server BROKERS --reassignment-json-file FILE --execute",
        ),
    ),
)
