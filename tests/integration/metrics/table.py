"""Which scenario moves which metric, and which metrics nothing moves on one broker."""

from tests.integration.metrics import (
    authentication,
    cleaning,
    connections,
    groups,
    quotas,
    telemetry,
    traffic,
    transactions,
    upheavals,
)
from tests.integration.metrics.stage import ONE_PARTITION_EACH, Scenario

_TOPICS = "kafka_server_brokertopicmetrics_"
_REQUESTS = "kafka_network_requestmetrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_GROUP_METRICS = "kafka_server_group_coordinator_metrics_"
_TRANSACTION_METRICS = "kafka_server_transaction_coordinator_metrics_"

MOVED_BY: dict[Scenario, tuple[str, ...]] = {
    Scenario(traffic.a_start): (
        "kafka_controller_kafkacontroller_activecontrollercount",
        "kafka_controller_kafkacontroller_activebrokercount",
        "kafka_server_kafkaserver_brokerstate",
        *(f"kafka_controller_controllereventmanager_eventqueue{name}timems" for name in ("", "processing")),
        "kafka_controller_kafkacontroller_eventqueueoperationsstartedcount",
        "kafka_controller_kafkacontroller_newactivecontrollerscount",
        "kaspar_info",
        "kaspar_start_time_seconds",
        "kaspar_time_seconds",
        *(f"kaspar_log_directory_{name}_bytes" for name in ("free", "total")),
        "process_max_fds",
        "process_start_time_seconds",
    ),
    Scenario(traffic.a_write_and_a_read): (
        *(f"{_TOPICS}{name}_total" for name in ("messagesin", "bytesin", "bytesout")),
        *(f"{_TOPICS}{name}_total" for name in ("totalproducerequests", "totalfetchrequests")),
        *(f"{_REQUESTS}{name}" for name in ("requests_total", "errors_total", "requestbytes", "totaltimems_max")),
        *(f"{_REQUESTS}{name}timems" for name in ("requestqueue", "local", "remote", "throttle")),
        *(f"{_REQUESTS}{name}timems" for name in ("responsequeue", "responsesend", "total")),
        *(f"kafka_log_log_{name}" for name in ("size", "logendoffset")),
        *(
            f"kafka_server_replicamanager_{name}"
            for name in ("partitioncount", "leadercount", "atminisrpartitioncount")
        ),
        *(f"kafka_cluster_partition_{name}" for name in ("replicascount", "insyncreplicascount", "atminisr")),
        *(f"kafka_controller_kafkacontroller_{name}" for name in ("globaltopiccount", "globalpartitioncount")),
        "process_cpu_seconds_total",
    ),
    Scenario(traffic.a_batch_that_is_too_large): (f"{_TOPICS}bytesrejected_total",),
    Scenario(traffic.a_record_without_a_key): (
        f"{_TOPICS}nokeycompactedtopicrecords_total",
        f"{_TOPICS}failedproducerequests_total",
    ),
    Scenario(traffic.a_wrong_checksum): (f"{_TOPICS}invalidmessagecrcrecords_total",),
    Scenario(traffic.a_producer_without_a_sequence): (f"{_TOPICS}invalidoffsetorsequencerecords_total",),
    Scenario(traffic.a_batch_to_compress): (f"{_TOPICS}producemessageconversions_total",),
    Scenario(traffic.a_read_with_a_negative_limit): (f"{_TOPICS}failedfetchrequests_total",),
    Scenario(traffic.a_log_with_a_limit): ("kafka_log_log_retentionsizeinpercent",),
    Scenario(traffic.a_write_that_is_synced): ("kafka_log_logflushstats_logflushrateandtimems",),
    Scenario(traffic.deleted_records): ("kafka_log_log_logstartoffset", "kafka_log_log_numlogsegments"),
    Scenario(connections.a_connection_that_comes_and_one_that_goes): (
        *(
            f"kafka_server_socket_server_metrics_connection_{name}"
            for name in ("count", "creation_total", "close_total")
        ),
        "process_open_fds",
    ),
    Scenario(connections.an_idle_connection, settings={"connections.max.idle.ms": "500"}): (
        "kaspar_idle_connections_closed_total",
    ),
    Scenario(authentication.log_ins_of_every_kind, new_broker=authentication.secured_broker): (
        *(
            f"kafka_server_socket_server_metrics_{name}"
            for name in (
                *(f"{kind}_{end}" for kind in authentication.KINDS for end in ("total", "rate")),
                "successful_authentication_no_reauth_total",
                "reauthentication_latency_avg",
                "reauthentication_latency_max",
                "expired_connections_killed_count",
                "connections",
            )
        ),
        "kafka_network_socketserver_expiredconnectionskilledcount",
    ),
    Scenario(connections.a_stranger_that_says_nothing, settings={"kaspar.unauthenticated.timeout.ms": "500"}): (
        "kaspar_unidentified_connections_closed_total",
    ),
    Scenario(quotas.a_client_over_every_quota, settings=quotas.QUICK): (
        *(f"kafka_server_{kind}_{name}" for kind in ("produce", "fetch") for name in ("byte_rate", "throttle_time")),
        *(f"kafka_server_request_{name}" for name in ("request_time", "throttle_time")),
        *(f"kafka_server_controllermutation_{name}" for name in ("mutation_rate", "tokens", "throttle_time")),
        *(
            f"kafka_server_quota_{name}"
            for name in ("byte_rate", "request_time", "mutation_rate", "tokens", "throttle_time")
        ),
    ),
    Scenario(connections.a_connection_too_many): ("kaspar_connections_rejected_total",),
    Scenario(connections.bytes_that_are_no_request): ("kaspar_malformed_requests_total",),
    Scenario(connections.a_fetch_that_waits): (
        "kafka_network_requestchannel_responsequeuesize",
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "kafka_server_delayedoperationpurgatory_numdelayedoperations",
    ),
    Scenario(connections.batches_that_wait_to_be_compressed): (
        "kafka_network_requestchannel_requestqueuesize",
        "kafka_network_socketserver_memorypoolused",
        "kafka_network_socketserver_memorypoolavailable",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
    ),
    Scenario(connections.fetch_sessions): (
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    ),
    Scenario(connections.a_loop_that_stands_still): (
        *(f"kaspar_loop_{name}_seconds" for name in ("longest_stall", "longest_recent_stall", "silent")),
        "kaspar_loop_stalls_total",
    ),
    Scenario(traffic.a_replica_that_moves): ("kafka_server_replicaalterlogdirsmanager_maxlag",),
    Scenario(cleaning.a_log_to_clean): (
        "kafka_log_logcleaner_max_compaction_delay_secs",
        "kafka_log_logcleanermanager_max_dirty_percent",
        "kafka_log_logcleanermanager_time_since_last_run_ms",
        "kafka_log_logcleaner_cleaner_recopy_percent",
        "kafka_log_logcleaner_max_buffer_utilization_percent",
        "kafka_log_logcleaner_max_clean_time_secs",
        *(f"kaspar_log_cleaner_{name}_total" for name in ("runs", "read_bytes", "written_bytes", "removed_records")),
    ),
    Scenario(cleaning.a_log_that_cannot_be_cleaned): (
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "kafka_log_logcleanermanager_uncleanable_bytes",
    ),
    Scenario(groups.a_coordinator_of_groups): (f"{_GROUP_METRICS}num_partitions",),
    Scenario(groups.a_group_that_has_joined): (f"{_GROUPS}numgroupscompletingrebalance",),
    Scenario(groups.a_stable_group): (
        f"{_GROUPS}numgroups",
        f"{_GROUPS}numgroupsstable",
        f"{_GROUP_METRICS}group_count",
        f"{_GROUP_METRICS}group_completed_rebalance_count",
        "kaspar_coordinator_timers",
    ),
    Scenario(groups.a_group_that_rebalances): (
        f"{_GROUPS}numgroupspreparingrebalance",
        "kaspar_group_requests_waiting",
    ),
    Scenario(groups.an_empty_group_with_offsets): (
        f"{_GROUPS}numgroupsempty",
        f"{_GROUPS}numoffsets",
        f"{_GROUP_METRICS}offset_commit_count",
    ),
    Scenario(groups.a_deleted_group): (f"{_GROUP_METRICS}offset_deletion_count",),
    Scenario(groups.an_offset_that_expires): (f"{_GROUP_METRICS}offset_expiration_count",),
    Scenario(groups.a_group_of_the_new_protocol): (
        f"{_GROUP_METRICS}consumer_group_count",
        f"{_GROUP_METRICS}consumer_group_rebalance_count",
    ),
    Scenario(transactions.a_coordinator_of_transactions, since_start=True): (f"{_TRANSACTION_METRICS}num_partitions",),
    Scenario(transactions.a_transaction): (
        "kaspar_transactional_ids",
        "kafka_server_replicamanager_produceridcount",
        "kafka_cluster_partition_laststableoffsetlag",
        "kafka_server_addpartitionstotxnmanager_verificationtimems",
    ),
    Scenario(transactions.a_write_outside_of_any_transaction): (
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
    ),
    Scenario(transactions.a_prepared_transaction): (
        "kaspar_prepared_transactions",
        "kaspar_prepared_transaction_oldest_age_seconds",
    ),
    Scenario(transactions.a_transaction_that_was_forgotten): (
        "kafka_server_replicamanager_partitionswithlatetransactionscount",
    ),
    Scenario(telemetry.pushes_good_and_bad): (
        *(f"kafka_server_client_metrics_{name}_count" for name in ("instance", "unknown_subscription_request")),
        *(f"kafka_server_client_metrics_{name}_count" for name in ("throttle", "plugin_export", "plugin_error")),
        *(f"kafka_server_client_metrics_plugin_export_time_{name}" for name in ("avg", "max")),
        "kaspar_client_telemetry_series",
    ),
    Scenario(connections.work, since_start=True): (
        *(f"kafka_network_socketserver_networkprocessoravgidle{end}" for end in ("percent", "_percent")),
        *(f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle{end}" for end in ("percent", "_percent")),
        f"{_GROUP_METRICS}thread_idle_ratio_avg",
    ),
    Scenario(upheavals.a_restart, settings=ONE_PARTITION_EACH): (
        *(f"{_GROUP_METRICS}partition_load_time_{name}" for name in ("max", "avg")),
        *(f"{_TRANSACTION_METRICS}partition_load_time_{name}" for name in ("max", "avg")),
    ),
    Scenario(upheavals.a_log_directory_that_fails): (
        "kafka_log_logmanager_offlinelogdirectorycount",
        "kafka_log_logmanager_logdirectoryoffline",
        "kafka_server_replicamanager_offlinereplicacount",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize",
    ),
}
"""In this order: the directory fails last."""

ALWAYS_0 = frozenset(
    {
        f"{_TOPICS}invalidmagicnumberrecords_total",
        f"{_GROUPS}numgroupsdead",
        "kafka_log_logcleaner_deadthreadcount",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_server_replicamanager_underminisrpartitioncount",
        "kafka_cluster_partition_underreplicated",
        "kafka_cluster_partition_underminisr",
        *(
            f"kafka_server_replicamanager_{name}"
            for name in ("isrshrinks_total", "isrexpands_total", "failedisrupdates_total", "reassigningpartitions")
        ),
        *(f"{_TOPICS}{name}_total" for name in ("replicationbytesin", "replicationbytesout")),
        *(f"{_TOPICS}{name}_total" for name in ("reassignmentbytesin", "reassignmentbytesout")),
        *(f"kafka_server_replicafetchermanager_{name}" for name in ("maxlag", "minfetchrate", "failedpartitionscount")),
        "kafka_server_fetcherlagmetrics_consumerlag",
        f"{_TOPICS}fetchmessageconversions_total",
        *(
            f"kafka_controller_kafkacontroller_{name}"
            for name in ("fencedbrokercount", "controlledshutdownbrokercount", "metadataerrorcount")
        ),
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
    }
)
"""What nothing moves on one broker. The reference page says why."""

UP_TO_THE_MACHINE = frozenset(
    {"kafka_server_kafkaserver_linux_disk_read_bytes", "kafka_server_kafkaserver_linux_disk_write_bytes"}
)
"""What moves only if a disk is used: not with files in memory, or in the page cache. Unit tests do."""

NEVER_MOVED = frozenset(
    {
        f"{_TOPICS}invalidmagicnumberrecords_total",
        f"{_GROUPS}numgroupsdead",
        "kafka_log_logcleaner_deadthreadcount",
        "kafka_server_replicamanager_failedisrupdates_total",
        "kafka_server_replicafetchermanager_failedpartitionscount",
        f"{_TOPICS}fetchmessageconversions_total",
        "kafka_controller_kafkacontroller_controlledshutdownbrokercount",
        "kafka_controller_kafkacontroller_metadataerrorcount",
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total",
    }
)
"""Of these, what nothing moves in a cluster either, or only a race that a test cannot bring about. Unit tests do."""
