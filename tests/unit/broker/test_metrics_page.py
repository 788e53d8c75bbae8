"""The metrics page: Prometheus reads it, its names are the ones dashboards use, and it agrees with the declarations."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode
from kaspar.base.exposition import CHUNK_LINES, Family, Kind, labels, render
from kaspar.base.ids import TopicPartition
from kaspar.broker.cleaning.log_cleaner import CleanerTotals
from kaspar.broker.cleaning.numbers import CleanerNumbers, Uncleanable
from kaspar.broker.coordination.view import GroupNumbers, TransactionNumbers
from kaspar.broker.metrics import BrokerMetrics, BrokerState, process
from kaspar.broker.metrics.catalogue import FAMILIES, metrics_page, reference_page
from kaspar.broker.metrics.view import FollowerLag
from kaspar.network.authentication_metrics import AuthenticationMetrics, TlsKind
from kaspar.quotas.clients import UsageReading
from tests.unit.broker.broker_view import (
    FakeBroker,
    FakeController,
    FakeFetchSessions,
    FakeListener,
    FakeLog,
    FakeLogDir,
    FakeMemoryPool,
    FakePartition,
    FakePurgatory,
    FakeReplication,
    new_metrics,
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def page(metrics: BrokerMetrics, broker: FakeBroker) -> str:
    return b"".join(metrics_page(metrics, broker)).decode()


def samples(text: str) -> Samples:
    """Every sample that Prometheus' own parser finds, by name and labels; a sample that comes twice fails."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} comes twice"
            found[key] = sample.value
    return found


def value(found: Samples, name: str, /, **label_values: str) -> float:
    """The parser calls every counter a total, whatever its name on the page."""
    of_labels = frozenset(label_values.items())
    return found.get((f"{name}_total", of_labels), found.get((name, of_labels), math.nan))


def some_authentications() -> AuthenticationMetrics:
    clock = ManualClock()
    metrics = AuthenticationMetrics(clock.monotonic)
    metrics.succeeded.mark()
    metrics.succeeded.mark()
    metrics.succeeded_without_reauthentication += 1
    metrics.reauthenticated_in(0.01)
    metrics.reauthenticated_in(0.02)
    metrics.expired += 1
    for connection in ("open", "closed"):
        metrics.encrypted(connection, TlsKind("TLS_AES_256_GCM_SHA384", "TLSv1.3"))
    metrics.closed("closed")
    clock.advance(10_000)
    return metrics


def a_busy_broker() -> tuple[BrokerMetrics, FakeBroker]:
    """Every family has at least one sample."""
    metrics = new_metrics()
    produce = metrics.requests.of("Produce")
    produce.inline(13, 0.004, 1000)
    produce.delayed(12, 0.004, 0.5, 3000)
    produce.errors[ErrorCode.NOT_ENOUGH_REPLICAS] += 2
    metrics.requests.of("FetchConsumer").inline(17, 0.001, 80)
    topic = metrics.topics.of("t")
    topic.bytes_in += 500
    topic.messages_in += 5
    metrics.topics.of("u").messages_in += 1
    metrics.log_flush_time.record(0.02)
    metrics.stalls.worked(0.05)
    metrics.verification_time.record(0.004)
    metrics.verification_failures.value += 2
    metrics.controller.unclean_elections += 1
    metrics.controller.eligible_elections += 2
    metrics.controller.events_started += 30
    metrics.controller.errors += 3
    metrics.controller.queue_time.record(0.005)
    metrics.controller.processing_time.record(0.02)
    broker = FakeBroker(
        all_logs=[
            FakeLog(
                TopicPartition("t", 0),
                size=500,
                log_start_offset=1,
                log_end_offset=6,
                segment_count=2,
                retention_size_percent=50,
                producer_id_count=3,
            )
        ],
        copied=FakeReplication(
            follower_lags=[FollowerLag("ReplicaFetcherThread-0-2", TopicPartition("u", 1), 17)],
            failed_partition_count=1,
        ),
        all_partitions=[
            FakePartition(
                TopicPartition("t", 0),
                replica_count=3,
                in_sync_replica_count=1,
                min_insync_replicas=2,
                has_late_transaction=True,
                last_stable_offset_lag=8,
            ),
            FakePartition(TopicPartition("t", 1), replica_count=3, in_sync_replica_count=2, min_insync_replicas=2),
            FakePartition(TopicPartition("u", 0), replica_count=1, in_sync_replica_count=1, min_insync_replicas=2),
            FakePartition(TopicPartition("u", 1), is_leader=False, replica_count=2, in_sync_replica_count=1),
        ],
        all_listeners=[
            FakeListener("PLAINTEXT", connections={1, 2}, accepted=5, disconnected=3, rejected=4, idle_closed=1),
            FakeListener("TLS", authentication=some_authentications()),
        ],
        directories=[FakeLogDir("/data/a"), FakeLogDir("/data/b", online=False), FakeLogDir("/")],
        all_purgatories=[FakePurgatory("Produce", watched=4, delayed=2), FakePurgatory("Fetch", watched=9, delayed=3)],
        sessions=FakeFetchSessions(session_count=2, cached_partition_count=30, evictions=1),
        pool=FakeMemoryPool(limit_bytes=1000, used_bytes=300),
        active_controller=FakeController(3, 2, 4, 1, 1, controlled_shutdown_broker_count=1),
        coordinated_groups=GroupNumbers(
            active_count=4,
            loading_count=1,
            load_times_ms=[10.0, 30.0],
            classic_states={"Stable": 2, "Empty": 1},
            consumer_states={"Reconciling": 5},
            offset_count=77,
            offset_commits=9,
            offset_expirations=8,
            offset_deletions=7,
            classic_rebalances=6,
            consumer_rebalances=5,
            waiting_count=3,
        ),
        coordinated_transactions=TransactionNumbers(
            active_count=2,
            states={"Ongoing": 3},
            prepared_count=1,
            oldest_prepared_ms=2500,
            waiting_markers=4,
        ),
        cleaner_numbers=CleanerNumbers(
            recopy_percent=40,
            max_buffer_utilization_percent=12,
            max_clean_time_secs=3,
            max_compaction_delay_secs=60,
            dead_thread_count=1,
            max_dirty_percent=75,
            time_since_last_run_ms=900,
            uncleanable=(Uncleanable("/data/a", 2, 5000), Uncleanable("/data/b")),
            totals=CleanerTotals(runs=4, bytes_read=10_000, bytes_written=4000, records_removed=60),
        ),
        timers=12,
        offline_replicas=1,
        usage={
            "Produce": [UsageReading("alice%", "app", 1000.5, 250.0)],
            "Fetch": [UsageReading("", "app", 50.0, 0.0)],
            "Request": [UsageReading("bob", "", 12.5, 30.0)],
            "ControllerMutation": [UsageReading("bob", "", 2.0, 0.0, 7.5)],
        },
        requests_queued=6,
        responses_queued=7,
    )
    return metrics, broker


def test_dashboards_find_the_names_they_know() -> None:
    found = samples(page(*a_busy_broker()))
    assert value(found, "kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 5
    assert value(found, "kafka_server_brokertopicmetrics_messagesin_total") == 6
    assert value(found, "kafka_server_brokertopicmetrics_bytesin_total", topic="t") == 500
    assert value(found, "kafka_network_requestmetrics_requests_total", request="Produce", version="13") == 1
    assert value(found, "kafka_server_produce_byte_rate", user="alice%25", client_id="app") == 1000.5
    assert value(found, "kafka_server_produce_throttle_time", user="alice%25", client_id="app") == 250
    assert value(found, "kafka_server_request_request_time", user="bob", client_id="") == 12.5
    assert value(found, "kafka_server_controllermutation_tokens", user="bob", client_id="") == 7.5
    assert (
        value(found, "kafka_network_requestmetrics_errors_total", request="Produce", error="NOT_ENOUGH_REPLICAS") == 2
    )
    assert value(found, "kafka_network_requestmetrics_totaltimems_count", request="Produce") == 2
    assert value(found, "kafka_network_requestmetrics_totaltimems_sum", request="Produce") == pytest.approx(508)
    p99 = value(found, "kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99")
    assert p99 == pytest.approx(504, rel=0.035)
    assert value(found, "kafka_network_requestmetrics_totaltimems_max", request="Produce") == pytest.approx(
        504, rel=0.065
    )
    assert value(found, "kafka_network_requestmetrics_requestbytes_sum", request="Produce") == 4000
    assert value(found, "kafka_network_requestmetrics_requests_total", request="Fetch", version="17") == 1
    assert value(found, "kafka_log_log_size", topic="t", partition="0") == 500
    assert value(found, "kafka_log_log_logstartoffset", topic="t", partition="0") == 1
    assert value(found, "kafka_log_log_logendoffset", topic="t", partition="0") == 6
    assert value(found, "kafka_log_log_numlogsegments", topic="t", partition="0") == 2
    assert value(found, "kafka_log_logflushstats_logflushrateandtimems_count") == 1
    assert value(found, "kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert value(found, "kafka_log_logmanager_logdirectoryoffline", logDirectory="/data/b") == 1
    assert value(found, "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch") == 9
    assert value(found, "kafka_server_delayedoperationpurgatory_numdelayedoperations", delayedOperation="Fetch") == 3
    assert value(found, "kafka_server_fetchsessioncache_numincrementalfetchsessions") == 2
    assert value(found, "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached") == 30
    assert value(found, "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total") == 1
    assert value(found, "kafka_network_requestchannel_requestqueuesize") == 6
    assert value(found, "kafka_network_socketserver_memorypoolavailable") == 700
    assert value(found, "kafka_network_socketserver_networkprocessoravgidlepercent") == 1
    assert value(found, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") == 1
    listener = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    assert value(found, "kafka_server_socket_server_metrics_connection_count", **listener) == 2
    assert value(found, "kafka_server_socket_server_metrics_connection_close_total", **listener) == 3
    assert value(found, "kaspar_connections_rejected_total", **listener) == 4
    assert value(found, "kafka_server_kafkaserver_brokerstate") == BrokerState.RUNNING
    assert value(found, "kaspar_loop_stalls_total", over_ms="10") == 1
    assert value(found, "kaspar_loop_stalls_total", over_ms="100") == 0
    assert value(found, "kaspar_start_time_seconds") == 1_700_000_000.5


def test_authentications_are_counted_by_listener() -> None:
    found = samples(page(*a_busy_broker()))
    tls, start = {"listener": "TLS", "networkProcessor": "0"}, "kafka_server_socket_server_metrics_"
    assert value(found, f"{start}successful_authentication_total", **tls) == 2
    assert value(found, f"{start}successful_authentication_rate", **tls) == 2 / 10
    assert value(found, f"{start}successful_authentication_no_reauth_total", **tls) == 1
    assert value(found, f"{start}failed_authentication_total", **tls) == 0
    assert value(found, f"{start}successful_reauthentication_total", **tls) == 2
    assert value(found, f"{start}reauthentication_latency_avg", **tls) == 15
    assert value(found, f"{start}reauthentication_latency_max", **tls) == 20
    assert value(found, f"{start}expired_connections_killed_count", **tls) == 1
    suite = {"cipher": "TLS_AES_256_GCM_SHA384", "protocol": "TLSv1.3"}
    assert value(found, f"{start}connections", **suite, **tls) == 1
    assert value(found, f"{start}successful_authentication_total", listener="PLAINTEXT", networkProcessor="0") == 0


def test_replicas_are_counted_as_kafka_counts_them() -> None:
    found = samples(page(*a_busy_broker()))
    assert value(found, "kafka_server_replicamanager_partitioncount") == 4
    assert value(found, "kafka_server_replicamanager_leadercount") == 3
    assert value(found, "kafka_server_replicamanager_underreplicatedpartitions") == 2
    assert value(found, "kafka_server_replicamanager_underminisrpartitioncount") == 1
    assert value(found, "kafka_server_replicamanager_atminisrpartitioncount") == 2
    assert value(found, "kafka_server_replicamanager_offlinereplicacount") == 1
    assert value(found, "kafka_cluster_partition_underminisr", topic="t", partition="0") == 1
    assert value(found, "kafka_cluster_partition_underreplicated", topic="u", partition="1") == 0
    assert value(found, "kafka_cluster_partition_replicascount", topic="u", partition="1") == 0


def test_groups_are_counted_as_kafka_counts_them() -> None:
    found = samples(page(*a_busy_broker()))
    manager, coordinator = "kafka_coordinator_group_groupmetadatamanager", "kafka_server_group_coordinator_metrics"
    assert value(found, f"{manager}_numgroups") == 3
    assert value(found, f"{manager}_numgroupsstable") == 2
    assert value(found, f"{manager}_numgroupspreparingrebalance") == 0
    assert value(found, f"{manager}_numoffsets") == 77
    assert value(found, f"{coordinator}_group_count", protocol="classic") == 3
    assert value(found, f"{coordinator}_group_count", protocol="consumer") == 5
    assert value(found, f"{coordinator}_consumer_group_count", state="reconciling") == 5
    assert value(found, f"{coordinator}_consumer_group_count", state="stable") == 0
    assert value(found, f"{coordinator}_offset_commit_count") == 9
    assert value(found, f"{coordinator}_offset_expiration_count") == 8
    assert value(found, f"{coordinator}_offset_deletion_count") == 7
    assert value(found, f"{coordinator}_group_completed_rebalance_count") == 6
    assert value(found, f"{coordinator}_consumer_group_rebalance_count") == 5
    assert value(found, f"{coordinator}_num_partitions", state="loading") == 1
    assert value(found, f"{coordinator}_partition_load_time_max") == 30
    assert value(found, f"{coordinator}_partition_load_time_avg") == 20
    assert value(found, "kaspar_group_requests_waiting") == 3
    assert value(found, "kaspar_coordinator_timers") == 12


def test_the_cleaner_is_shown_under_kafkas_names() -> None:
    found = samples(page(*a_busy_broker()))
    cleaner, manager = "kafka_log_logcleaner", "kafka_log_logcleanermanager"
    assert value(found, f"{cleaner}_cleaner_recopy_percent") == 40
    assert value(found, f"{cleaner}_max_buffer_utilization_percent") == 12
    assert value(found, f"{cleaner}_max_clean_time_secs") == 3
    assert value(found, f"{cleaner}_max_compaction_delay_secs") == 60
    assert value(found, f"{cleaner}_deadthreadcount") == 1
    assert value(found, f"{manager}_max_dirty_percent") == 75
    assert value(found, f"{manager}_time_since_last_run_ms") == 900
    assert value(found, f"{manager}_uncleanable_partitions_count", logDirectory="/data/a") == 2
    assert value(found, f"{manager}_uncleanable_bytes", logDirectory="/data/a") == 5000
    assert value(found, f"{manager}_uncleanable_partitions_count", logDirectory="/data/b") == 0
    assert value(found, "kaspar_log_cleaner_runs_total") == 4
    assert value(found, "kaspar_log_cleaner_read_bytes_total") == 10_000
    assert value(found, "kaspar_log_cleaner_written_bytes_total") == 4000
    assert value(found, "kaspar_log_cleaner_removed_records_total") == 60


def test_transactions_are_shown() -> None:
    found = samples(page(*a_busy_broker()))
    assert value(found, "kaspar_transactional_ids", state="Ongoing") == 3
    assert value(found, "kaspar_prepared_transactions") == 1
    assert value(found, "kaspar_prepared_transaction_oldest_age_seconds") == 2.5
    manager = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    assert value(found, f"{manager}_unknowndestinationqueuesize") == 4
    assert value(found, "kafka_server_replicamanager_partitionswithlatetransactionscount") == 1
    assert value(found, "kafka_server_transaction_coordinator_metrics_num_partitions", state="active") == 2
    assert value(found, "kafka_server_addpartitionstotxnmanager_verificationtimems_count") == 1
    assert value(found, "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count") == 2


def test_only_the_controller_reports_the_cluster() -> None:
    metrics, broker = a_busy_broker()
    found = samples(page(metrics, broker))
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(found, "kafka_controller_kafkacontroller_globalpartitioncount") == 4
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 1
    broker.active_controller = None
    found = samples(page(metrics, broker))
    assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 0
    assert value(found, "kafka_controller_kafkacontroller_globalpartitioncount") == 0


def test_a_controller_shows_its_queue_and_its_elections() -> None:
    found = samples(page(*a_busy_broker()))
    events, stats = "kafka_controller_controllereventmanager", "kafka_controller_controllerstats"
    assert value(found, f"{events}_eventqueuetimems_sum") == pytest.approx(5)
    assert value(found, f"{events}_eventqueueprocessingtimems_count") == 1
    assert value(found, f"{events}_eventqueueprocessingtimems", quantile="0.99") == pytest.approx(20, rel=0.035)
    assert value(found, f"{stats}_uncleanleaderelections_total") == 1
    assert value(found, f"{stats}_electionfromeligibleleaderreplicas_total") == 2
    assert value(found, "kafka_controller_kafkacontroller_eventqueueoperationsstartedcount") == 30
    assert value(found, "kafka_controller_kafkacontroller_metadataerrorcount") == 3
    assert value(found, "kafka_controller_kafkacontroller_controlledshutdownbrokercount") == 1


def test_what_followers_lack_is_shown_by_fetcher() -> None:
    found = samples(page(*a_busy_broker()))
    lag = {"clientId": "ReplicaFetcherThread-0-2", "topic": "u", "partition": "1"}
    assert value(found, "kafka_server_fetcherlagmetrics_consumerlag", **lag) == 17
    assert value(found, "kafka_server_replicafetchermanager_failedpartitionscount", clientId="Replica") == 1
    assert value(found, "kafka_server_replicamanager_produceridcount") == 3
    assert value(found, "kafka_cluster_partition_laststableoffsetlag", topic="t", partition="0") == 8
    assert value(found, "kafka_log_log_retentionsizeinpercent", topic="t", partition="0") == 50


def test_quotas_are_shown_also_by_the_names_of_the_jmx_exporters_rules() -> None:
    found = samples(page(*a_busy_broker()))
    produce = {"resource": "Produce", "user": "alice%25", "clientId": "app"}
    assert value(found, "kafka_server_quota_byte_rate", **produce) == 1000.5
    assert value(found, "kafka_server_quota_throttle_time", **produce) == 250
    assert value(found, "kafka_server_quota_tokens", resource="ControllerMutation", user="bob", clientId="") == 7.5


def test_an_unbounded_memory_pool_looks_as_it_does_in_kafka() -> None:
    found = samples(page(new_metrics(), FakeBroker()))
    assert value(found, "kafka_network_socketserver_memorypoolavailable") == 2**63 - 1


def test_the_process_reports_its_own_metrics() -> None:
    found = samples(page(new_metrics(), FakeBroker()))
    assert value(found, "process_resident_memory_bytes") > 1_000_000
    assert value(found, "process_virtual_memory_bytes") > value(found, "process_resident_memory_bytes")
    assert 0 < value(found, "process_open_fds") < value(found, "process_max_fds")
    assert value(found, "process_cpu_seconds_total") > 0
    assert time.time() - 3600 < value(found, "process_start_time_seconds") < time.time()


def test_bytes_of_disks_are_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PROC", tmp_path)
    assert process.disk_bytes("read_bytes") == -1, "as in Kafka where the kernel keeps no account"
    (tmp_path / "io").write_text("rchar: 900\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n")
    assert process.disk_bytes("read_bytes") == 4096
    assert process.disk_bytes("write_bytes") == 8192


def test_every_sample_has_the_kind_and_labels_of_its_declaration() -> None:
    declared = {family.name: family for family in FAMILIES}
    assert len(declared) == len(FAMILIES), "a name is declared twice"
    seen: dict[str, set[str]] = {}
    for parsed in text_string_to_metric_families(page(*a_busy_broker())):
        # The parser takes a counter's ending off its family's name.
        family = declared.get(parsed.name) or declared[f"{parsed.name}_total"]
        assert parsed.type == family.kind.value
        assert parsed.documentation == family.help
        for sample in parsed.samples:
            extra = {"quantile"} if family.kind is Kind.SUMMARY else set()
            assert set(sample.labels) - extra <= set(family.label_names)
            seen.setdefault(family.name, set()).update(set(sample.labels) - extra)
    assert {name: set(family.label_names) for name, family in declared.items()} == seen


def test_a_counters_name_ends_in_total_where_prometheus_asks_for_it() -> None:
    for family in FAMILIES:
        kafkas_own_name = family.kafka_name and family.name.endswith("_count")
        if family.kind is Kind.COUNTER and not kafkas_own_name:
            assert family.name.endswith("_total")


def test_a_page_of_named_families_has_those_and_no_others() -> None:
    metrics, broker = a_busy_broker()
    names = [
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_network_requestmetrics_totaltimems_count",  # a sample of a summary selects the whole summary
        "nothing_has_this_name",
    ]
    text = b"".join(metrics_page(metrics, broker, names)).decode()
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert families == {
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_network_requestmetrics_totaltimems",
    }
    everything = samples(page(metrics, broker))
    assert samples(text).items() <= everything.items()


def test_what_is_not_selected_is_not_computed() -> None:
    class Unread(FakeBroker):
        def partitions(self) -> list[FakePartition]:
            raise AssertionError("nobody asked for partitions")

    metrics = new_metrics()
    metrics.topics.of("t").bytes_in += 1
    text = b"".join(metrics_page(metrics, Unread(), ["kafka_server_brokertopicmetrics_bytesin_total"])).decode()
    assert samples(text)


def test_label_values_are_escaped() -> None:
    metrics = new_metrics()
    odd = 'a"b\\c\nd'
    metrics.topics.of(odd).bytes_in += 3
    broker = FakeBroker(all_logs=[FakeLog(TopicPartition(odd, 0), size=9)])
    found = samples(page(metrics, broker))
    assert value(found, "kafka_server_brokertopicmetrics_bytesin_total", topic=odd) == 3
    assert value(found, "kafka_log_log_size", topic=odd, partition="0") == 9


def test_help_with_a_line_break_stays_on_its_line() -> None:
    family: Family[None] = Family("one", Kind.GAUGE, "first\nsecond \\ third", lambda _: [(labels(a=1), 2)], ("a",))
    (parsed,) = text_string_to_metric_families(b"".join(render([family], None)).decode())
    assert parsed.documentation == "first\nsecond \\ third"


def test_a_large_page_comes_in_chunks_of_whole_lines() -> None:
    logs = [FakeLog(TopicPartition("t", partition)) for partition in range(2 * CHUNK_LINES)]
    chunks = list(metrics_page(new_metrics(), FakeBroker(all_logs=logs)))
    assert all(chunk.endswith(b"\n") for chunk in chunks if chunk)
    assert max(chunk.count(b"\n") for chunk in chunks) <= CHUNK_LINES + 1


def test_four_thousand_partitions_take_well_under_a_second() -> None:
    """The bound is loose because test machines are busy: it takes some 20 ms."""
    metrics = new_metrics()
    names = [f"topic-{number}" for number in range(400)]
    for name in names:
        metrics.topics.of(name).bytes_in += 1
    partitions = [TopicPartition(name, partition) for name in names for partition in range(10)]
    broker = FakeBroker(
        all_logs=[FakeLog(partition) for partition in partitions],
        all_partitions=[FakePartition(partition) for partition in partitions],
    )
    start = time.process_time()
    text = page(metrics, broker)
    assert time.process_time() - start < 0.5
    assert text.count("\n") > 40_000


def test_the_reference_page_names_every_metric_once() -> None:
    rows = [line for line in reference_page().splitlines() if line.startswith("| `")]
    named = [row.split("`")[1] for row in rows]
    assert named == [family.name for family in FAMILIES]
    cells: Mapping[str, int] = {row: row.count(" | ") for row in rows}
    assert set(cells.values()) == {4}, "a bar in a text breaks the table"
