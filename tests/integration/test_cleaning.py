"""The log cleaner of a real broker: topics shrink to the last value of each key, by themselves or when asked."""

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.records import Record, build_batch
from tests.integration.commands import run
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient

TOPIC = "salaries"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
PEOPLE = 20
SEGMENT_BYTES = 8000
COMPACTED = {"cleanup.policy": "compact", "internal.segment.bytes": str(SEGMENT_BYTES)}
EAGER = {**COMPACTED, "min.cleanable.dirty.ratio": "0.01"}
ONLY_ON_REQUEST = {**COMPACTED, "min.cleanable.dirty.ratio": "1"}
RUNS = "kaspar_log_cleaner_runs_total"
STANDSTILL = {"log.cleaner.io.max.bytes.per.second": "1"}

Salaries = dict[bytes, bytes]


def pay(client: RawClient, rounds: Iterable[int], *, partition: int = 0) -> Salaries:
    """Everybody's salary, one record each, again and again; returns what everybody has last."""
    last: Salaries = {}
    for number in rounds:
        now_ms = time.time_ns() // 1_000_000
        last = {b"person-%d" % person: b"%d" % (1000 * number + person) for person in range(PEOPLE)}
        batch = build_batch([Record(now_ms, person, salary) for person, salary in last.items()])
        assert client.produce_batch(TOPIC, bytes(batch), partition=partition).error_code == 0
    return last


def read(client: RawClient, *, partition: int = 0) -> tuple[int, Salaries]:
    """How many records there are, and the last value of each key. Offsets only ever rise."""
    count, offset, last = 0, -1, Salaries()
    for record in client.read_all(TOPIC, partition=partition):
        assert record.offset > offset
        offset, count = record.offset, count + 1
        assert record.key is not None
        assert record.value is not None
        last[record.key] = record.value
    return count, last


def alter(client: RawClient, kind: int, name: str, values: Mapping[str, str]) -> None:
    changes = tuple(AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items())
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = client.call(request, IncrementalAlterConfigsResponse).responses
    assert response.error_code == 0, response.error_message


def compact(broker: ObservedBroker, topic: str = TOPIC, *more: str) -> tuple[int, str, str]:
    done = run("kaspar", "compact", topic, "--bootstrap-server", f"127.0.0.1:{broker.port}", *more)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def broker_in(folder: Path, **overrides: str) -> ObservedBroker:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return ObservedBroker(folder, overrides={"log.cleaner.backoff.ms": "50", **named})


# By itself


def test_a_compacted_topic_shrinks_to_the_last_value_of_each_key(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, broker.client() as client:
        assert client.create_topic(TOPIC, configs=EAGER) == 0
        pay(client, range(1))
        of_a_round = broker.log_size(TOPIC)
        last = pay(client, range(1, 100))
        wait_until(
            lambda: broker.log_size(TOPIC) < SEGMENT_BYTES + 2 * of_a_round, "all but the last segment is compacted"
        )
        count, seen = read(client)
        assert seen == last
        assert count < 2 * PEOPLE + PEOPLE * SEGMENT_BYTES // of_a_round
        assert broker.metrics()[RUNS] >= 1
        assert broker.metrics()["kafka_log_logcleaner_deadthreadcount"] == 0
        assert f"partition={TOPIC}-0 offsets=0-" in broker.log_lines("cleaned a log")[0]


def test_a_reader_always_sees_the_last_values(tmp_path: Path) -> None:
    """Slowly, so that segments are replaced while they are read."""
    with broker_in(tmp_path) as broker, broker.client() as client:
        alter(client, BROKER_RESOURCE, "", {"log.cleaner.io.max.bytes.per.second": "400000"})
        assert client.create_topic(TOPIC, configs=ONLY_ON_REQUEST) == 0
        last = pay(client, range(300))
        compacting = threading.Thread(target=compact, args=(broker,))
        compacting.start()
        counts = []
        while compacting.is_alive():
            count, seen = read(client)
            assert seen == last
            counts.append(count)
        compacting.join()
        assert read(client) == (PEOPLE, last)
        assert counts == sorted(counts, reverse=True), "records only ever become fewer"


def test_settings_count_while_the_broker_runs(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, broker.client() as client:
        alter(client, BROKER_RESOURCE, "", STANDSTILL)
        assert client.create_topic(TOPIC, configs={**COMPACTED, "cleanup.policy": "delete"}) == 0
        pay(client, range(100))
        alter(client, TOPIC_RESOURCE, TOPIC, {"cleanup.policy": "compact"})
        wait_until(lambda: broker.metrics()["kafka_log_logcleanermanager_max_dirty_percent"] == 100, "it is looked at")
        alter(client, BROKER_RESOURCE, "", {"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": "4000000"})
        assert broker.metrics()[RUNS] == 0, "one byte a second is too slow"
        alter(client, BROKER_RESOURCE, "", {"log.cleaner.io.max.bytes.per.second": "1.0E9"})
        wait_until(lambda: broker.metrics()[RUNS] >= 1, "the throttle is opened, and the cleaning under way goes on")


# On request


def test_kaspar_compact_compacts_now(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, broker.client() as client:
        assert client.create_topic(TOPIC, partitions=3, configs=ONLY_ON_REQUEST) == 0
        last = [pay(client, range(50), partition=partition) for partition in range(3)]
        code, table, problems = compact(broker, TOPIC, "--partitions", "0,2")
        assert (code, problems) == (0, "")
        header, *rows = table.splitlines()
        assert header.split() == ["partition", "before", "after", "records", "removed"]
        assert [(row.split()[0], row.split()[-1]) for row in rows] == [
            (f"{TOPIC}-0", f"{49 * PEOPLE}"),
            (f"{TOPIC}-2", f"{49 * PEOPLE}"),
        ]
        assert [read(client, partition=partition)[0] for partition in range(3)] == [PEOPLE, 50 * PEOPLE, PEOPLE]
        pay(client, [50])
        broker.restart()
        with broker.client() as after:
            assert read(after, partition=2) == (PEOPLE, last[2])
            assert read(after, partition=1) == (50 * PEOPLE, last[1])
            assert after.offset_at(TOPIC) == (0, 51 * PEOPLE), "offsets never change"


def test_what_is_younger_than_the_lag_stays(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, broker.client() as client:
        assert client.create_topic(TOPIC, configs={**COMPACTED, "min.compaction.lag.ms": "3600000"}) == 0
        pay(client, range(50))
        code, output, _ = compact(broker)
        assert code == 0
        assert f"the last {50 * PEOPLE:,} offsets are not compacted yet, because min.compaction.lag.ms" in output
        assert read(client)[0] == 50 * PEOPLE


def test_compact_explains_why_it_cannot(tmp_path: Path) -> None:
    with broker_in(tmp_path, log_cleaner_enable="false") as broker, broker.client() as client:
        assert client.create_topic("plain") == 0
        assert client.create_topic(TOPIC, configs=EAGER) == 0
        code, output, problem = compact(broker, "plain")
        assert (code, output) == (1, "")
        assert "log.cleaner.enable=true" in problem
        assert "log.cleaner.enable=true" in compact(broker)[2]
        broker.overrides["log.cleaner.enable"] = "true"
        broker.restart()
        assert "cleanup.policy of plain is delete" in compact(broker, "plain")[2]
        code, _, problem = compact(broker, "nowhere")
        assert code == 3
        assert problem.startswith("kaspar: there is no topic 'nowhere': ")
        assert compact(broker)[0] == 0
    code, _, problem = compact(broker)
    assert code == 5
    assert f"no broker responds at {broker.bootstrap}" in problem


def test_internal_topics_are_compacted_and_coordinators_load_what_is_left(tmp_path: Path) -> None:
    overrides = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    with broker_in(tmp_path, **overrides) as broker:
        servers = {"bootstrap.servers": f"127.0.0.1:{broker.port}"}
        with broker.client() as client:
            assert client.create_topic("orders") == 0
        producer = Producer({**servers, "transactional.id": "till"})
        consumer = Consumer({**servers, "group.id": "readers", "isolation.level": "read_committed"})
        producer.init_transactions(10)
        for number in range(30):
            producer.begin_transaction()
            producer.produce("orders", b"%d" % number)
            position = [TopicPartition("orders", 0, 2 * number + 2)]
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 10)
            if number % 3:
                producer.commit_transaction(10)
            else:
                producer.abort_transaction(10)
        for topic in ("__consumer_offsets", "__transaction_state"):
            code, table, problems = compact(broker, topic)
            assert (code, problems) == (0, "")
            assert int(table.splitlines()[-1].split()[-1]) >= 10, table
        broker.restart()
        (found,) = consumer.committed([TopicPartition("orders", 0)], timeout=10)
        assert found.offset == 60
        again = Producer({**servers, "transactional.id": "till"})
        again.init_transactions(10)
        again.begin_transaction()
        again.produce("orders", b"30")
        again.commit_transaction(10)
        consumer.close()


# What comes in between


def test_a_stop_aborts_a_cleaning_and_the_next_start_repeats_it(tmp_path: Path) -> None:
    with broker_in(tmp_path, log_cleaner_io_max_bytes_per_second="1") as broker:
        with broker.client() as client:
            assert client.create_topic(TOPIC, configs=EAGER) == 0
            last = pay(client, range(50))
        wait_until(lambda: broker.metrics()["kafka_log_logcleanermanager_max_dirty_percent"] == 100, "it is looked at")
        assert broker.stop() == 0, "a stop does not wait for the cleaner's throttle"
        broker.overrides["log.cleaner.io.max.bytes.per.second"] = "1.0E9"
        broker.start()
        with broker.client() as client:
            wait_until(lambda: broker.log_size(TOPIC) < 2 * SEGMENT_BYTES, "it is cleaned")
            folder = broker.data_dir / f"{TOPIC}-0"
            wait_until(lambda: not [*folder.glob("*.cleaned"), *folder.glob("*.swap")], "nothing half-done is left")
            assert read(client)[1] == last


def test_a_topic_is_deleted_while_it_is_cleaned(tmp_path: Path) -> None:
    with broker_in(tmp_path, log_cleaner_io_max_bytes_per_second="1") as broker, broker.client() as client:
        for _ in range(2):
            assert client.create_topic(TOPIC, configs=EAGER) == 0
            pay(client, range(30))
            wait_until(
                lambda: broker.metrics()["kafka_log_logcleanermanager_max_dirty_percent"] == 100, "it is looked at"
            )
            assert client.delete_topic(TOPIC) == 0
            assert not (broker.data_dir / f"{TOPIC}-0").exists()
        assert broker.metrics()["kafka_log_logmanager_offlinelogdirectorycount"] == 0


def test_topics_come_and_go_and_settings_change_while_logs_are_cleaned(tmp_path: Path) -> None:
    """Nothing is lost, nothing is logged as an error, and the directory stays online."""
    with broker_in(tmp_path, log_cleaner_backoff_ms="1") as broker, broker.client() as client:
        assert client.create_topic(TOPIC, configs={**EAGER, "internal.segment.bytes": "1500"}) == 0
        for number in range(25):
            last = pay(client, range(10 * number, 10 * number + 10))
            assert read(client)[1] == last
            assert client.create_topic("fleeting", configs={**EAGER, "internal.segment.bytes": "200"}) == 0
            for _ in range(10):
                batch = build_batch([Record(time.time_ns() // 1_000_000, b"key", b"value")])
                assert client.produce_batch("fleeting", bytes(batch)).error_code == 0
            alter(client, TOPIC_RESOURCE, TOPIC, {"cleanup.policy": "delete" if number % 3 == 1 else "compact"})
            alter(client, BROKER_RESOURCE, "", {"log.cleaner.threads": "2" if number % 2 else "1"})
            assert client.delete_topic("fleeting") == 0
        wait_until(lambda: broker.metrics()[RUNS] >= 1, "a cleaning comes to its end")
        metrics = broker.metrics()
        assert metrics["kafka_log_logcleaner_deadthreadcount"] == 0
        assert metrics["kafka_log_logmanager_offlinelogdirectorycount"] == 0


def test_a_damaged_partition_is_logged_once_and_no_other_waits_for_it(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker, broker.client() as client:
        broker.expect_error("a partition cannot be cleaned")
        assert client.create_topic(TOPIC, partitions=2, configs=ONLY_ON_REQUEST) == 0
        for partition in (0, 1):
            pay(client, range(50), partition=partition)
        with broker.segment_files(TOPIC, 0)[0].open("r+b") as file:
            file.seek(300)
            file.write(b"damage")
        code, table, problem = compact(broker)
        assert code == 1
        assert f"{TOPIC}-1" in table
        assert f"kaspar: {TOPIC}-0: {TOPIC}-0 cannot be cleaned:" in problem
        assert compact(broker, TOPIC, "--partitions", "0")[0] == 1
        assert read(client, partition=1)[0] == PEOPLE
        assert len(broker.log_lines("a partition cannot be cleaned")) == 1
        label = f'{{logDirectory="{broker.data_dir}"}}'
        assert broker.metrics()[f"kafka_log_logcleanermanager_uncleanable_partitions_count{label}"] == 1
        assert broker.metrics()[f"kafka_log_logcleanermanager_uncleanable_bytes{label}"] > 0
        assert read(client, partition=1)[0] == PEOPLE
