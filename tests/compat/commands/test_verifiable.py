"""kafka-verifiable-producer and kafka-verifiable-consumer: the same lines of JSON as Kafka's print."""

import json
import subprocess
from typing import Any

import pytest

from tests.compat.commands.catalog import VERIFIABLE_CONSUMER, VERIFIABLE_PRODUCER
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.settling import settle
from tests.compat.tools.comparing import run_ours, sentences
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, classpath
from tests.peers.kafka_tools import KafkaTools
from tests.peers.raw_client import RawClient

MASKED = {"timestamp": 0, "avg_throughput": 0.0}
ADDRESS = ("--bootstrap-server", "127.0.0.1:1")


def events(output: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [{name: MASKED.get(name, value) for name, value in event.items()} for event in found]


def client_of(place: Place) -> RawClient:
    return RawClient(int(place.broker.bootstrap.rpartition(":")[2]))


def new_topic(place: Place, name: str) -> str:
    topic = place.name_of(name)
    with client_of(place) as client:
        client.create_topic(topic)
    settle(place)
    return topic


def produce(place: Place, topic: str, values: list[bytes]) -> None:
    with client_of(place) as client:
        assert client.produce(topic, values).error_code == 0


def run_kafkas_producer(*arguments: str) -> str:
    """A process of its own: its last lines are printed when it ends."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    java = [require_tool("java"), *LIGHT_JVM, quiet, "-cp", classpath(), VERIFIABLE_PRODUCER.kafka_class]
    return subprocess.run([*java, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def test_producer(places: Places) -> None:
    theirs, *ours = places
    more = ("--max-messages", "5", "--repeating-keys", "2", "--value-prefix", "7", "--message-create-time", "1000")
    others = ("--acks", "1", "--throughput", "1000")
    topic = new_topic(theirs, "numbers")
    expected = run_kafkas_producer(*theirs.servers, "--topic", topic, *more, *others)
    with client_of(theirs) as client:
        records = [(record.key, record.value) for record in client.read_all(topic)]
    for place in ours:
        name = new_topic(place, "numbers")
        done = run_ours(VERIFIABLE_PRODUCER, *place.servers, "--topic", name, *more, *others)
        assert done.code == 0
        found = [json.dumps(event).replace(name, topic) for event in events(done.output)]
        assert found == [json.dumps(event) for event in events(expected)]
        with client_of(place) as client:
            stored = list(client.read_all(name))
        assert [(record.key, record.value) for record in stored] == records
        assert stored[0].timestamp == 1000


def test_producer_reports_what_is_not_stored(places: Places) -> None:
    for place in places[1:]:
        done = run_ours(VERIFIABLE_PRODUCER, *place.servers, "--topic", "in valid", "--max-messages", "1")
        (failed,) = (event for event in events(done.output) if event["name"] == "producer_send_error")
        assert (failed["value"], failed["exception"]) == (
            "0",
            "class org.apache.kafka.common.errors.InvalidTopicException",
        )
        assert events(done.output)[-1]["acked"] == 0


def consume(place: Place, topic: str, count: int, *arguments: str) -> None:
    common = ("--topic", topic, "--max-messages", str(count), *arguments)
    done = place.run_unseen(VERIFIABLE_CONSUMER, *place.servers, *common)
    place.see(done.code)
    # Kafka's last line is printed when its process ends, and the processes of these tests go on. Whether a member of a
    # KIP-848 group is first assigned nothing depends on how soon the coordinator knows the topic.
    compared = [
        event
        for event in events(done.output)
        if event["name"] != "shutdown_requested" and event.get("partitions") != []
    ]
    place.see([json.dumps(event) for event in compared])


def test_consumer(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = new_topic(place, "numbers")
        produce(place, topic, [b"a", b"b", b"c"])
        group = place.name_of("group")
        consume(place, topic, 3, "--group-id", group, "--verbose")
        produce(place, topic, [b"d"])
        strategy = ("--assignment-strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor")
        consume(place, topic, 1, "--group-id", group, "--session-timeout", "10000", *strategy)
        consume(place, topic, 4, "--group-id", place.name_of("auto"), "--enable-autocommit", "--group-instance-id", "i")
        consume(place, topic, 4, "--group-id", place.name_of("new"), "--group-protocol", "consumer")

    same_at_all(places, scenario)


WRONG_PRODUCER = [
    ("--topic", "x"),
    ADDRESS,
    (*ADDRESS, "--topic", "x", "--acks", "many"),
    (*ADDRESS, "--topic", "x", "--acks", "7"),
    (*ADDRESS, "--topic", "x", "--producer.config", "/dev/null", "--command-config", "/dev/null"),
]
WRONG_CONSUMER = [
    (*ADDRESS, "--topic", "x"),
    ("--topic", "x", "--group-id", "y"),
    (*ADDRESS, "--topic", "x", "--group-id", "y", "--max-messages", "many"),
    (*ADDRESS, "--topic", "x", "--group-id", "y", "--group-protocol", "zork"),
    (*ADDRESS, "--topic", "x", "--group-id", "y", "--session-timeout", "10000", "--group-protocol", "consumer"),
]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        *((VERIFIABLE_PRODUCER, each) for each in WRONG_PRODUCER),
        *((VERIFIABLE_CONSUMER, each) for each in WRONG_CONSUMER),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) and value[0].startswith("--") else "",
)
def test_wrong_options(command: Any, arguments: tuple[str, ...], kafka_tools: KafkaTools) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class, *arguments), run_ours(command, *arguments)
    assert ours.code == theirs.code == 1
    assert _complaint(ours.errors) == _complaint(theirs.errors)


def _complaint(errors: str) -> str:
    """argparse4j fills its lines with spaces."""
    return " ".join(sentences(errors).rpartition("error: ")[2].split())


def test_settings_files(places: Places) -> None:
    theirs, ours, _ = places
    for command, arguments in ((VERIFIABLE_PRODUCER, ()), (VERIFIABLE_CONSUMER, ("--group-id", "y"))):
        for place in (theirs, ours):
            done = place.run_unseen(command, *ADDRESS, "--topic", "x", *arguments, "--command-config", "/nowhere")
            assert done.code == 1
            assert "error: /nowhere" in done.errors
