"""docs/operating.md: brokers are added, removed and replaced, with the commands of the page and under load."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kaspar.testing import Cluster
from tests.chaos.load import IDEMPOTENT, Producers
from tests.chaos.replicated_topic import PARTITIONS, ReplicatedTopic
from tests.integration.cluster.conftest import OVERRIDES
from tests.integration.cluster.up import needs_java
from tests.integration.commands import run
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until

TOPIC = "orders"
INTERNAL = ("__consumer_offsets", "__transaction_state")
THROTTLE = ("--throttle", "50000000")
SECONDS = 60.0

Plan = dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=3, data_dir=tmp_path / "cluster", overrides=OVERRIDES) as running:
        yield running


class Operator:
    """Who works with the page: writes files, and runs commands."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def generate(self, brokers: Sequence[int]) -> tuple[Plan, Plan]:
        """The current assignment, and the proposed one."""
        topics = {"version": 1, "topics": [{"topic": name} for name in (TOPIC, *INTERNAL)]}
        listed = ",".join(map(str, brokers))
        output = self._reassign(
            "--generate", "--topics-to-move-json-file", self._file("topics.json", topics), "--broker-list", listed
        )
        current, proposed = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
        return current, proposed

    def move(self, plan: Plan, *options: str) -> None:
        """`--execute`, then `--verify` until all is completed."""
        file = self._file("plan.json", plan)
        started = self._reassign("--execute", "--reassignment-json-file", file, *options)
        assert "Successfully started partition reassignments" in started
        wait_until(lambda: self._is_completed(file), "every partition is completed", seconds=SECONDS)

    def _is_completed(self, file: Path) -> bool:
        status = self._reassign("--verify", "--reassignment-json-file", file)
        return "is still in progress" not in status and "Clearing broker-level throttles" in status

    def _reassign(self, *arguments: str | Path) -> str:
        done = run("kafka-reassign-partitions", "--bootstrap-server", self._bootstrap, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _file(self, name: str, content: Plan) -> Path:
        file = self._folder / name
        file.write_text(json.dumps(content))
        return file

    def brokers(self) -> set[int]:
        return set(self._admin.list_topics(timeout=SECONDS).brokers)

    def brokers_with_replicas(self) -> set[int]:
        topics = self._admin.list_topics(timeout=SECONDS).topics
        return {
            broker
            for name in (TOPIC, *INTERNAL)
            for partition in topics[name].partitions.values()
            for broker in partition.replicas
        }


def another_broker(cluster: Cluster, folder: Path, broker_id: int) -> KasparProcess:
    settings = {
        **OVERRIDES,
        "node.id": str(broker_id),
        "zookeeper.connect": cluster.zookeeper_connect,
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    return KasparProcess(folder / f"broker-{broker_id}", overrides=settings)


def commit_offsets(bootstrap: str) -> Consumer:
    """A group and a transactional id, whose records are in the internal topics."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "transfers"})
    producer.init_transactions(SECONDS)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(TOPIC, number, 5) for number in range(PARTITIONS)], asynchronous=False)
    return consumer


def committed_offsets(consumer: Consumer) -> list[int] | None:
    """None if librdkafka asks a broker that the group's coordinator has left: it reports that, and looks for the
    coordinator only then."""
    try:
        found = consumer.committed([TopicPartition(TOPIC, number) for number in range(PARTITIONS)], timeout=SECONDS)
    except KafkaException as problem:
        if problem.args[0].code() == KafkaError.NOT_COORDINATOR:
            return None
        raise
    return [each.offset for each in found]


@pytest.mark.timeout(300)
def test_brokers_are_added_removed_and_replaced_under_load(cluster: Cluster, tmp_path: Path) -> None:
    bootstrap = cluster.bootstrap_servers
    four, five = (another_broker(cluster, tmp_path, broker) for broker in (4, 5))
    data_of = {4: four.data_dir, 5: five.data_dir}
    topic = ReplicatedTopic(bootstrap, lambda broker: data_of.get(broker, cluster.broker_data(broker)), TOPIC)
    operator = Operator(bootstrap, tmp_path)
    consumer = commit_offsets(bootstrap)
    with contextlib.ExitStack() as stack, Producers(bootstrap, TOPIC, PARTITIONS, kinds=[IDEMPOTENT]) as producers:
        # Adding a broker
        stack.enter_context(four)
        wait_until(lambda: operator.brokers() == {1, 2, 3, 4}, "broker 4 is up")
        _, proposed = operator.generate([1, 2, 3, 4])
        operator.move(proposed, *THROTTLE)
        assert operator.brokers_with_replicas() == {1, 2, 3, 4}
        producers.wait_for_acknowledgements()

        # Removing a broker
        _, proposed = operator.generate([1, 2, 3])
        operator.move(proposed, *THROTTLE)
        assert operator.brokers_with_replicas() == {1, 2, 3}
        wait_until(lambda: not logs_in(four.data_dir), "broker 4 has no logs")
        assert four.stop() == 0
        wait_until(lambda: operator.brokers() == {1, 2, 3}, "broker 4 is not listed any more")
        producers.wait_for_acknowledgements()

        # Replacing a broker, which is broken
        cluster.kill(3)
        stack.enter_context(five)
        wait_until(lambda: operator.brokers() == {1, 2, 5}, "broker 5 is up, and 3 is not")
        current, _ = operator.generate([1, 2, 5])
        for partition in current["partitions"]:
            del partition["log_dirs"]
            partition["replicas"] = [5 if broker == 3 else broker for broker in partition["replicas"]]
        operator.move(current)
        assert operator.brokers_with_replicas() == {1, 2, 5}
        producers.wait_for_acknowledgements()

        # Broker 3 was repaired after all. It finds that it has been replaced, and removes what it had.
        cluster.start_broker(3)
        wait_until(lambda: not logs_in(cluster.broker_data(3)), "broker 3 has no logs")
        producers.finish()
        topic.check(producers.ledger)
        assert not producers.problems, producers.problems[:5]
        wait_until(lambda: committed_offsets(consumer) == [5] * PARTITIONS, "the group has its offsets")
        consumer.close()


def logs_in(data: Path) -> list[str]:
    """The folders of partitions; not those that are about to be deleted."""
    folders = [each.name for each in data.iterdir() if each.is_dir() and not each.name.endswith("-delete")]
    return sorted(name for name in folders if name.startswith((TOPIC, *INTERNAL)))
