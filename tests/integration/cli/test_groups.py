"""`kaspar group`, `txn`, `cluster` and `broker`."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer

from kaspar.base.errors import ErrorCode
from kaspar.cli.failures import FAILED, NOT_FOUND
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.records import Record, build_batch
from tests.integration.cli.conftest import Kaspar
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient, produce_request

RECORDS = 10
READ = 4
BEFORE_KIP_890 = 11
"""A version of Produce whose partitions a client adds to its transaction itself."""


@contextmanager
def reading(broker: KasparProcess, topic: str, group: str) -> Iterator[Consumer]:
    """A consumer that has read and committed some of the records."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "client.id": "reader"})
    consumer.subscribe([topic])
    messages: list[Message[bytes, bytes]] = []
    while len(messages) < READ:
        messages += [each for each in consumer.consume(READ - len(messages), timeout=1) if each.error() is None]
    consumer.commit(message=messages[-1], asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def topic(kaspar: Kaspar, broker: KasparProcess) -> str:
    name = kaspar.name("orders")
    kaspar.run("topic", "create", name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, str(number))
    producer.flush()
    return name


def test_group_is_listed_described_and_its_lag_shown(kaspar: Kaspar, broker: KasparProcess, topic: str) -> None:
    group = kaspar.name("billing")
    with reading(broker, topic, group):
        assert [group, "Classic", "consumer", "Stable"] in kaspar.lines("group", "list")
        (described,) = kaspar.json("group", "describe", group)
        assert (described["state"], described["coordinator"]) == ("Stable", 1)
        assert described["members"][0]["client_id"] == "reader"
        assert described["members"][0]["partitions"] == [f"{topic}-0"]
        (offset,) = described["offsets"]
        assert (offset["committed"], offset["end_offset"], offset["lag"]) == (READ, RECORDS, RECORDS - READ)
        assert "has members (reader)" in kaspar.refusal(FAILED, "group", "seek", group, "--to", "start")
        assert "stop its members first" in kaspar.refusal(FAILED, "group", "delete", group)
    text = kaspar.run("group", "describe", group).output
    assert [topic, "0", "4", "10", "6", "-", "-", "-"] in [line.split() for line in text.splitlines()]
    assert kaspar.lines("group", "lag", group)[1:] == [[group, topic, "1", "6"]]
    assert [group, topic, "1", "6"] in kaspar.lines("group", "lag")


def test_group_seeks(kaspar: Kaspar, broker: KasparProcess, topic: str) -> None:
    group = kaspar.name("billing")
    with reading(broker, topic, group):
        pass

    def moved(*arguments: str) -> int:
        ((_, _, _, to),) = kaspar.lines("group", "seek", group, *arguments, "--no-headers")
        return int(to)

    assert moved("--to", "start", "--dry-run") == 0
    assert kaspar.json("group", "describe", group)[0]["offsets"][0]["committed"] == READ
    assert moved("--to", "earliest", "--dry-run") == 0
    assert moved("--to", "latest", "--dry-run") == RECORDS
    assert moved("--to", "end") == RECORDS
    assert moved("--by", "-3") == RECORDS - 3
    assert moved("--to", "5", "--topic", topic, "--partitions", "0") == 5
    assert moved("--to", "500") == RECORDS
    assert moved("--to", "1 hour ago") == 0
    assert moved("--to", "now") == RECORDS
    assert kaspar.json("group", "describe", group)[0]["offsets"][0]["committed"] == RECORDS
    new = kaspar.name("new")
    assert "name a --topic" in kaspar.refusal(NOT_FOUND, "group", "seek", new, "--to", "end")
    assert kaspar.run("group", "seek", new, "--to", "end", "--topic", topic).code == 0
    assert kaspar.run("group", "delete", group, new, "--yes").code == 0


def test_group_that_does_not_exist(kaspar: Kaspar) -> None:
    group = kaspar.name("nobody")
    assert kaspar.refusal(NOT_FOUND, "group", "describe", group).startswith(f"there is no group {group}: ")
    assert kaspar.refusal(NOT_FOUND, "group", "lag", group).startswith(f"there is no group {group}: ")
    assert kaspar.refusal(NOT_FOUND, "group", "delete", group) == f"group {group}: does not exist\n"
    assert kaspar.run("group", "delete", group, "--if-exists").code == 0


def test_open_transaction_is_shown_and_aborted(kaspar: Kaspar, broker: KasparProcess, topic: str) -> None:
    name = kaspar.name("pay")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    listed = {each["transactional_id"]: each["state"] for each in kaspar.json("txn", "list", "--open")}
    assert listed[name] == "Ongoing"
    (described,) = kaspar.json("txn", "describe", name)
    assert described["partitions"] == [f"{topic}-0"]
    assert described["open_ms"] >= 0
    assert kaspar.run("txn", "hanging", "--older-than", "1s", "--topic", topic) == (0, "", "No hanging transactions.\n")
    assert kaspar.run("txn", "abort", name).output == f"{name}: aborted\n"
    wait_until(
        lambda: name not in {each["transactional_id"] for each in kaspar.json("txn", "list", "--open")},
        "the transaction is no longer open",
    )
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert "there is no transactional id" in kaspar.refusal(NOT_FOUND, "txn", "abort", kaspar.name("nobody"))


def test_hanging_transaction_is_found_and_aborted(kaspar: Kaspar, broker: KasparProcess, topic: str) -> None:
    """As brokers of old accepted it: a record of a transaction that no coordinator knows."""
    verification = "transaction.partition.verification.enable"
    assert kaspar.run("config", "set", "broker", f"{verification}=false").code == 0
    with RawClient(broker.port) as client:
        producer_id = client.new_producer_id()
        batch = build_batch(
            [Record(1_000, None, b"hanging")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        request = dataclasses.replace(produce_request(topic, bytes(batch)), transactional_id=kaspar.name("nobody"))
        response = client.call(request, ProduceResponse, BEFORE_KIP_890)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    kaspar.run("config", "unset", "broker", verification)

    found = kaspar.run("txn", "hanging", "--topic", topic, "--json")
    assert found.code == FAILED
    (hanging,) = json.loads(found.output)
    assert (hanging["producer_id"], hanging["partition"], hanging["start_offset"]) == (producer_id, 0, RECORDS)
    aborted = kaspar.run("txn", "hanging", "--topic", topic, "--abort", "--yes")
    assert aborted == (0, f"producer {producer_id} on {topic}-0: aborted\n", "")
    assert kaspar.run("txn", "hanging", "--topic", topic).code == 0


def test_cluster_and_its_brokers(kaspar: Kaspar, broker: KasparProcess) -> None:
    information = kaspar.json("cluster", "info")
    assert information["controller"] == 1
    (only,) = information["brokers"]
    assert (only["id"], only["host"], only["port"], only["fenced"]) == (1, "127.0.0.1", broker.port, False)
    assert kaspar.json("broker", "list") == information["brokers"]
    assert kaspar.lines("cluster", "info")[0] == ["cluster", information["id"]]
    health = kaspar.json("cluster", "health")
    assert health["healthy"] is True
    assert kaspar.run("cluster", "health").output.startswith("The cluster is healthy.\n")
    metadata = kaspar.json("cluster", "metadata")
    assert metadata["id"] == information["id"]
    assert kaspar.json("cluster", "quorum")["leader"] == 1
    (directory,) = kaspar.json("broker", "log-dirs", "1")
    assert (directory["path"], directory["error"]) == (str(broker.data_dir), None)
    described = kaspar.json("broker", "describe", "1")
    assert described["log_dirs"][0]["path"] == str(broker.data_dir)
    assert kaspar.refusal(NOT_FOUND, "broker", "describe", "7") == "there is no broker 7 (brokers: 1)\n"
