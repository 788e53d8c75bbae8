"""How a registry starts: without brokers, with many schemas, and how it outlives its broker."""

from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.registry.instances import QUICK_GROUPS, Registry, record_schema, wait_until
from tests.peers.kaspar import KasparProcess
from tests.peers.wire import free_port


def test_registry_waits_for_its_brokers_and_outlives_them(tmp_path: Path) -> None:
    broker = KasparProcess(tmp_path / "broker", overrides=QUICK_GROUPS)
    registry = Registry(tmp_path, broker.bootstrap, "registry", {})
    try:
        registry.launch()
        wait_until(lambda: "waiting for the brokers" in registry.log_text(), "it says that it waits")
        assert registry.is_running
        broker.start()
        wait_until(registry.responds, "it responds")
        schema_id = registry.register("orders", record_schema("Order"))
        broker.kill()
        # Reads need no broker.
        assert registry.get(f"/schemas/ids/{schema_id}")["schema"] == record_schema("Order")
        broker.start()
        wait_until(registry.leads, "it leads again")
        assert registry.register("orders", record_schema("Order")) == schema_id
        assert registry.register("payments", record_schema("Payment")) == schema_id + 1
        assert registry.stop() == 0
    finally:
        registry.close()
        broker.stop()


def test_registry_without_brokers_ends_with_a_sentence(tmp_path: Path) -> None:
    settings = {"kafkastore.init.timeout.ms": "700"}
    registry = Registry(tmp_path, f"127.0.0.1:{free_port()}", "registry", settings)
    assert registry.launch().process.wait(30) == 1
    last = registry.log_text().splitlines()[-1]
    assert "could not be used within kafkastore.init.timeout.ms=700" in last
    assert "Traceback" not in registry.log_text()


def test_registry_that_waits_for_its_brokers_can_be_stopped(tmp_path: Path) -> None:
    registry = Registry(tmp_path, f"127.0.0.1:{free_port()}", "registry", {})
    registry.launch()
    wait_until(lambda: registry.log_file.exists() and "waiting" in registry.log_text(), "it says that it waits")
    assert registry.stop() == 0


def test_topic_with_many_schemas_in_every_compression_is_replayed(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    topic = settings["kafkastore.topic"]
    new = NewTopic(topic, num_partitions=1, replication_factor=1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([new])[topic].result(30)
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for place, codec in enumerate(codecs):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50})
        for number in range(400):
            schema_id = place * 400 + number + 1
            key = f'{{"keytype":"SCHEMA","subject":"s{schema_id}","version":1,"magic":1}}'
            value = f'{{"subject":"s{schema_id}","version":1,"id":{schema_id},"schema":"\\"string\\"","deleted":false}}'
            producer.produce(topic, key=key, value=value, partition=0)
        producer.flush(30)
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        assert len(registry.subjects()) == 2000
        wait_until(registry.leads, "it leads")
        assert registry.register("next", record_schema("Next")) == 2001
