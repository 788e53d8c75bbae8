"""`kaspar topic`, `config` and `log`."""

import subprocess
import sys

import yaml
from confluent_kafka import Producer

from kaspar.cli.failures import FAILED, NOT_FOUND
from tests.integration.cli.conftest import Kaspar
from tests.peers.kaspar import KasparProcess


def test_topics_are_created_listed_described_and_deleted(kaspar: Kaspar) -> None:
    orders, payments = kaspar.name("orders"), kaspar.name("payments")
    created = kaspar.run("topic", "create", orders, payments, "-p", "3", "--set", "retention.ms=1000000")
    assert created == (0, f"topic {orders}: created\ntopic {payments}: created\n", "")
    pattern = kaspar.name("*")
    assert kaspar.lines("topic", "list", pattern) == [
        ["TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED", "OFFLINE"],
        [orders, "3", "1", "0", "0"],
        [payments, "3", "1", "0", "0"],
    ]
    assert kaspar.lines("topic", "list", pattern, "--no-headers")[0] == [orders, "3", "1", "0", "0"]
    by_expression = kaspar.lines("topic", "list", f"^{kaspar.name('')}(orders|other)$", "--no-headers")
    assert [name for name, *_ in by_expression] == [orders]
    (described,) = kaspar.json("topic", "describe", orders)
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert described["configs"] == [{"name": "retention.ms", "value": "1000000", "source": "DYNAMIC_TOPIC_CONFIG"}]
    assert kaspar.run("topic", "delete", orders, payments, "--yes").code == 0
    assert kaspar.run("topic", "list", pattern) == (
        0,
        "",
        "No topic matches.\n",
    )


def test_list_of_topics_loads_only_what_it_needs(broker: KasparProcess) -> None:
    heavy = {"asyncio", "ssl", "rich", "confluent_kafka", "json", "kaspar.config", "kaspar.security", "kaspar.storage"}
    program = (
        f"import sys; from kaspar.cli.main import main; main(['topic', 'list', '-b', '{broker.bootstrap}']); "
        f"sys.exit(' '.join({heavy} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_yaml_has_what_json_has(kaspar: Kaspar) -> None:
    topic = kaspar.name("t")
    kaspar.run("topic", "create", topic)
    assert yaml.safe_load(kaspar.run("topic", "describe", topic, "--yaml").output) == kaspar.json(
        "topic", "describe", topic
    )


def test_topic_that_is_there_or_is_not_there(kaspar: Kaspar) -> None:
    topic, nowhere = kaspar.name("t"), kaspar.name("nowhere")
    assert kaspar.run("topic", "create", topic).code == 0
    assert "already exists" in kaspar.refusal(FAILED, "topic", "create", topic)
    assert kaspar.run("topic", "create", topic, "--if-not-exists") == (0, f"topic {topic}: exists\n", "")
    sentence = f"there is no topic '{nowhere}': "
    for command in (["describe"], ["add-partitions", "-n", "1"], ["trim", "--before", "end"]):
        assert kaspar.refusal(NOT_FOUND, "topic", *command, nowhere).startswith(sentence)
    assert kaspar.refusal(NOT_FOUND, "log", "sizes", nowhere).startswith(sentence)
    ended = kaspar.run("topic", "delete", nowhere, topic)
    assert ended == (NOT_FOUND, f"topic {topic}: deleted\n", f"kaspar: topic {nowhere}: does not exist\n")
    assert kaspar.run("topic", "delete", nowhere, "--if-exists").code == 0


def test_many_topics_are_deleted_in_several_requests(kaspar: Kaspar) -> None:
    names = [kaspar.name(f"t{number}") for number in range(60)]
    assert kaspar.run("topic", "create", *names).code == 0
    assert kaspar.run("topic", "delete", *names).output.count(": deleted\n") == 60


def test_partitions_and_settings_are_changed(kaspar: Kaspar) -> None:
    topic = kaspar.name("t")
    kaspar.run("topic", "create", topic, "-p", "2")
    assert kaspar.run("topic", "add-partitions", topic, "-n", "2").output == f"topic {topic}: 4 partitions\n"
    assert kaspar.run("topic", "add-partitions", topic, "--to", "5").code == 0
    assert kaspar.refusal(FAILED, "topic", "add-partitions", topic, "--to", "1").startswith(f"topic {topic}: ")
    assert kaspar.run("topic", "alter", topic, "--set", "cleanup.policy=compact").code == 0
    assert "retention.ms" in kaspar.refusal(FAILED, "topic", "alter", topic, "--set", "retention.ms=x")
    assert kaspar.run("config", "get", f"topic/{topic}", "cleanup.policy").output == "compact\n"
    assert kaspar.run("config", "set", f"topic/{topic}", "cleanup.policy=delete", "--append").code == 0
    assert kaspar.json("config", "get", f"topic/{topic}", "cleanup.policy") == {"cleanup.policy": "compact,delete"}
    assert kaspar.run("config", "set", f"topic/{topic}", "retention.ms=5", "--dry-run").code == 0
    assert kaspar.run("topic", "alter", topic, "--unset", "cleanup.policy").code == 0
    assert kaspar.run("config", "get", f"topic/{topic}", "cleanup.policy", "retention.ms").output == (
        "delete\n604800000\n"
    )


def test_settings_of_brokers_and_groups(kaspar: Kaspar) -> None:
    assert kaspar.run("config", "set", "broker", "log.cleaner.threads=2").code == 0
    assert kaspar.run("config", "get", "broker/1", "log.cleaner.threads").output == "2\n"
    assert kaspar.run("config", "unset", "brokers", "log.cleaner.threads").code == 0
    assert kaspar.run("config", "get", "broker/1", "log.cleaner.threads").output == "1\n"
    group = kaspar.name("g")
    assert kaspar.run("config", "set", f"group/{group}", "consumer.session.timeout.ms=50000").code == 0
    assert ["group", group] in kaspar.lines("config", "list")
    for broker in ("broker/9", "logger/9"):
        assert kaspar.refusal(NOT_FOUND, "config", "set", broker, "a=b") == "there is no broker 9 (brokers: 1)\n"
    assert "has no setting nope" in kaspar.refusal(NOT_FOUND, "config", "get", "broker/1", "nope")
    missing = kaspar.name("nowhere")
    assert "does not exist" in kaspar.refusal(NOT_FOUND, "config", "list", f"topic/{missing}")
    changed = {row["name"]: row["source"] for row in kaspar.json("config", "list", "broker/1", "--changed")}
    assert changed["log.dirs"] == "STATIC_BROKER_CONFIG"
    assert "DEFAULT_CONFIG" not in changed.values()


def test_records_are_trimmed_and_sizes_shown(kaspar: Kaspar, broker: KasparProcess) -> None:
    topic = kaspar.name("t")
    kaspar.run("topic", "create", topic, "-p", "2")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce(topic, str(number), partition=0)
    producer.flush()
    assert kaspar.run("topic", "trim", topic, "--before", "4", "-p", "0").output == f"{topic}-0: trimmed\n"
    assert kaspar.json("topic", "describe", topic)[0]["partitions"][0]["start_offset"] == 4
    assert kaspar.run("topic", "trim", topic, "--before", "1 hour ago").code == 0
    assert kaspar.json("topic", "describe", topic)[0]["partitions"][0]["start_offset"] == 4
    assert kaspar.run("topic", "trim", topic, "--before", "end").code == 0
    assert kaspar.json("topic", "describe", topic)[0]["partitions"][0]["start_offset"] == 10
    assert "out of range" in kaspar.refusal(FAILED, "topic", "trim", topic, "--before", "99", "-p", "0")
    assert f"{topic} has partitions 0 to 1, not 7" in kaspar.refusal(
        NOT_FOUND, "topic", "trim", topic, "--before", "end", "-p", "7"
    )
    (row,) = kaspar.json("log", "sizes", topic)
    assert row["replicas"] == 2
    assert row["bytes"] > 0
    (first, _) = kaspar.json("log", "sizes", topic, "--by-partition")
    assert (first["partition"], first["broker"], first["path"]) == (0, 1, str(broker.data_dir))
