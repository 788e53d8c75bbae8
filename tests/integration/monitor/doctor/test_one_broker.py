"""Faults that are made on a real broker, found, and mended by the command of the finding."""

import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    incremental_alter_configs,
)
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.quotas import alter_client_quotas
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin, raise_first
from kaspar.client.admin.transactions import describe_transactions
from kaspar.monitor.doctor import Access, Doctor, findings
from kaspar.monitor.doctor.checks.load import COMPACTION_DELAY, FAMILIES, HANDLERS_IDLE, THROTTLE_TIME
from kaspar.monitor.doctor.observing.pages import PageAddress
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.quotas.entities import QuotaEntity
from kaspar.records import Record, build_batch
from kaspar.testing import Broker
from tests.integration.commands import run as run_command
from tests.integration.monitor.doctor.mending import examine, found, looks, run, the_only, worrying
from tests.peers.raw_client import RawClient, produce_request
from tests.peers.wire import free_port

BEFORE_KIP_890 = 11
"""A version of Produce whose partitions a client adds to its transaction itself."""
HOUR_MS = 3_600_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(metrics_port: int) -> Iterator[Broker]:
    overrides = {
        "kaspar.metrics.listener": f"127.0.0.1:{metrics_port}",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    with Broker(overrides=overrides) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as session:
        yield session


@pytest.fixture
def new_topic(admin: Admin) -> Callable[..., str]:
    def create(**settings: str) -> str:
        name = f"topic-{next(_numbers)}"
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        raise_first(create_topics(admin, [NewTopic(name, 1, 1, configs=configs)]).values())
        return name

    return create


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def produce(broker: Broker, topic: str, count: int, *, timestamp: int | None = None) -> None:
    with RawClient(broker.port) as client:
        records = [Record(timestamp or now_ms(), None, b"value") for _ in range(count)]
        assert client.produce_batch(topic, bytes(build_batch(records))).error_code == ErrorCode.NONE


def commit(admin: Admin, group: str, topic: str, offset: int) -> None:
    raise_first(alter_group_offsets(admin, group, {TopicPartition(topic, 0): offset}).values())


def test_a_healthy_broker_has_no_problems_and_no_warnings(broker: Broker, admin: Admin) -> None:
    """First of its module: before any fault is made."""
    assert worrying(examine(admin, broker.bootstrap_servers)) == []


def test_the_command_prints_what_is_found_and_exits_with_one(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(segment_ms="1000")
    produce(broker, topic, 1)
    arguments = ("doctor", "-b", broker.bootstrap_servers, "--seconds", "0")
    done = run_command("kaspar", *arguments)
    assert done.returncode == 1
    assert "WARNINGS\n  Topics have very small segments: topic " in done.stdout
    assert f"    $ kaspar topic alter {topic} --unset segment.ms -b {broker.bootstrap_servers}\n" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("    $"))
    report = json.loads(run_command("kaspar", *arguments, "--json").stdout)
    (row,) = (each for each in report["findings"] if each["code"] == "small-segments")
    assert (row["severity"], row["resource"], report["not_looked_at"]) == ("warning", f"topic {topic}", [])
    run(the_only(found(admin, broker.bootstrap_servers, "small-segments")))
    assert run_command("kaspar", *arguments).returncode == 0


def test_no_broker_is_another_exit_code() -> None:
    done = run_command("kaspar", "doctor", "-b", f"127.0.0.1:{free_port()}", "-X", "default.api.timeout.ms=200")
    assert (done.returncode, done.stdout) == (5, "")


def test_a_hanging_transaction_is_found_and_aborted(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    """As brokers of old accepted it: a record of a transaction that no coordinator knows."""
    topic = new_topic()
    describe_transactions(admin, ["nobody"])  # creates __transaction_state
    verification = "transaction.partition.verification.enable"
    resource = ConfigResource(ResourceType.BROKER, "")
    change = ConfigChange(verification, ConfigOperation.SET, "false")
    raise_first(incremental_alter_configs(admin, {resource: [change]}).values())
    with RawClient(broker.port) as client:
        batch = build_batch(
            [Record(1_000, None, b"hanging")],
            producer_id=client.new_producer_id(),
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        request = dataclasses.replace(produce_request(topic, bytes(batch)), transactional_id="nobody")
        client.call(request, ProduceResponse, BEFORE_KIP_890)
    hanging = the_only(found(admin, broker.bootstrap_servers, "hanging-transaction"))
    assert hanging.resource == f"topic {topic}"
    run(hanging)
    assert found(admin, broker.bootstrap_servers, "hanging-transaction") == []


def test_a_group_that_does_not_keep_up_is_found_over_time(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(), f"slow-{next(_numbers)}"
    produce(broker, topic, 10)
    commit(admin, group, topic, 1)
    offsets = itertools.count(2)

    def a_little_read_and_much_written() -> None:
        commit(admin, group, topic, next(offsets))
        produce(broker, topic, 5)

    seen = looks(admin, broker.bootstrap_servers, a_little_read_and_much_written, now_ms())
    (finding,) = (each for each in findings(seen) if each.code == "group-behind")
    assert (finding.resource, finding.detail) == (
        f"group {group}",
        f"Its lag grew from 9 to 21 records in 30 s, on 1 partition: {topic}-0.",
    )
    commit(admin, group, topic, 30)
    assert found(admin, broker.bootstrap_servers, "group-behind") == []


def test_a_group_that_is_about_to_lose_records_keeps_them_by_a_longer_retention(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(retention_ms=str(HOUR_MS)), f"late-{next(_numbers)}"
    produce(broker, topic, 3, timestamp=now_ms() - HOUR_MS * 9 // 10)
    produce(broker, topic, 3)
    commit(admin, group, topic, 3)
    code = "group-loses-records"
    assert found(admin, broker.bootstrap_servers, code) == []  # only new records are unread
    commit(admin, group, topic, 1)
    losing = the_only(found(admin, broker.bootstrap_servers, code))
    assert (losing.resource, "retention.ms is 60 minutes" in losing.detail) == (f"group {group}", True)
    run(losing)
    assert found(admin, broker.bootstrap_servers, code) == []


def test_a_group_whose_records_were_deleted_is_moved_to_what_is_left(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(), f"lost-{next(_numbers)}"
    produce(broker, topic, 6)
    commit(admin, group, topic, 1)
    raise_first(delete_records(admin, {TopicPartition(topic, 0): 4}).values())
    code = "group-lost-records"
    lost = the_only(found(admin, broker.bootstrap_servers, code))
    assert (lost.resource, "3 offsets" in lost.detail) == (f"group {group}", True)
    run(lost)
    assert found(admin, broker.bootstrap_servers, code) == []


def test_a_misspelt_topic_is_found_and_deleted(broker: Broker, admin: Admin, new_topic: Callable[..., str]) -> None:
    raise_first(create_topics(admin, [NewTopic("invoices", 1, 1), NewTopic("invioces", 1, 1)]).values())
    produce(broker, "invoices", 1)
    empty = the_only(found(admin, broker.bootstrap_servers, "misspelt-topic"))
    assert empty.resource == "topic invioces"
    run(empty)
    assert found(admin, broker.bootstrap_servers, "misspelt-topic") == []


def test_a_producer_with_a_clock_that_is_ahead_is_found(
    broker: Broker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    produce(broker, topic, 1, timestamp=now_ms() + HOUR_MS // 2)
    ahead = the_only(found(admin, broker.bootstrap_servers, "timestamps-ahead"))
    assert ahead.resource == f"topic {topic}"
    run(ahead)
    raise_first(delete_records(admin, {TopicPartition(topic, 0): 1}).values())
    produce(broker, topic, 1, timestamp=now_ms() + HOUR_MS // 2)
    assert found(admin, broker.bootstrap_servers, "timestamps-ahead") == []


def test_the_metrics_page_has_what_checks_read_and_the_clock(broker: Broker, admin: Admin, metrics_port: int) -> None:
    page = PageAddress(f"http://127.0.0.1:{metrics_port}/metrics")
    seen = Doctor(Access(broker.bootstrap_servers), {1: page}).look(admin)
    assert set(FAMILIES) - seen.pages[1].families.keys() <= {THROTTLE_TIME}  # which needs a quota
    assert seen.pages[1].value(COMPACTION_DELAY) == 0
    assert 0 <= (seen.pages[1].value(HANDLERS_IDLE) or -1) <= 1
    clock = seen.clocks[1]
    assert abs(clock.ahead_ms) <= clock.uncertainty_ms + 100
    assert "clocks-apart" not in {each.code for each in findings([seen])}

    years_ago = Doctor(Access(), {1: page}, now_ms=lambda: now_ms() - 86_400_000).look(admin)
    (apart,) = (each for each in findings([years_ago]) if each.code == "clocks-apart")
    assert "ahead of the clock of this machine" in apart.detail


def test_a_client_that_is_throttled_is_found_with_its_quota(
    broker: Broker, admin: Admin, metrics_port: int, new_topic: Callable[..., str]
) -> None:
    topic, entity = new_topic(), QuotaEntity(client_id="batch")
    raise_first(alter_client_quotas(admin, {entity: {"producer_byte_rate": 1000.0}}).values())
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "batch", "linger.ms": 0})
    for _ in range(3):
        producer.produce(topic, b"x" * 5_000)
        assert producer.flush(30) == 0
    pages = {1: PageAddress(f"http://127.0.0.1:{metrics_port}/metrics")}
    seen = Doctor(Access(broker.bootstrap_servers), pages).look(admin)
    (throttled,) = (each for each in findings([seen]) if each.code == "throttled-client")
    assert throttled.resource == "client-id batch"
    assert "quota set --client-id batch producer_byte_rate=2000" in (throttled.command or "")
    run(throttled)
    limits = Doctor(Access(broker.bootstrap_servers)).look(admin).quotas
    assert limits[entity] == {"producer_byte_rate": 2000.0}


def test_a_page_that_is_not_there_is_named(broker: Broker, admin: Admin) -> None:
    page = PageAddress(f"http://127.0.0.1:{free_port()}/metrics")
    seen = Doctor(Access(broker.bootstrap_servers), {1: page}).look(admin)
    assert [each.what for each in seen.missing] == ["metrics page of broker 1"]


def test_what_may_not_be_seen_is_named_and_the_rest_is_looked_at() -> None:
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with Broker(overrides=overrides) as guarded, Admin(guarded.bootstrap_servers) as stranger:
        seen = Doctor(Access(guarded.bootstrap_servers)).look(stranger)
        reasons = {each.what: each.why for each in seen.missing}
        assert reasons["settings of broker 1"] == "not permitted: an ACL for the cluster is missing"
        assert worrying(list(findings([seen]))) == []
        done = run_command("kaspar", "doctor", "-b", guarded.bootstrap_servers, "--seconds", "0")
        assert done.returncode == 0
        assert "SKIPPED\n" in done.stdout
