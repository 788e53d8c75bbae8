"""Topics that another registry wrote are taken over: what it stored is served, and the next ids follow its own."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.registry.instances import Registry, record_schema, wait_until
from tests.peers.kaspar import KasparProcess

Records = list[tuple[str, str | None]]

_ORDER = record_schema("Order")
_MONEY = 'syntax = "proto3";\nmessage Money { int64 cents = 1; }\n'
_PAYMENT = 'syntax = "proto3";\nimport "money.proto";\nmessage Payment { Money sum = 1; }\n'

CONFLUENT: Records = [
    ('{"keytype":"NOOP","magic":0}', None),
    (
        '{"keytype":"SCHEMA","subject":"orders","version":1,"magic":1}',
        f'{{"subject":"orders","version":1,"id":1,"schema":{json.dumps(_ORDER)},"deleted":false}}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"money","version":1,"magic":1}',
        '{"subject":"money","version":1,"id":2,"md5":"mAUXWbqyBSqZBjhbDDJMnQ==","schemaType":"PROTOBUF",'
        f'"schema":{json.dumps(_MONEY)},"deleted":false}}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"payments","version":1,"magic":1}',
        '{"subject":"payments","version":1,"id":3,"schemaType":"PROTOBUF","references":[{"name":"money.proto",'
        f'"subject":"money","version":1}}],"schema":{json.dumps(_PAYMENT)},"deleted":false}}',
    ),
    ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"FULL"}'),
    ('{"keytype":"CONFIG","subject":"orders","magic":0}', '{"subject":"orders","compatibilityLevel":"NONE"}'),
    ('{"keytype":"MODE","subject":"frozen","magic":0}', '{"subject":"frozen","mode":"READONLY"}'),
    (
        '{"keytype":"SCHEMA","subject":":.team:orders","version":1,"magic":1}',
        '{"subject":":.team:orders","version":1,"id":1,"metadata":{"tags":null,"properties":{"owner":"team"},'
        '"sensitive":null},"schema":"\\"long\\"","deleted":false}',
    ),
    ('{"keytype":"CONTEXT","tenant":"default","context":".team","magic":0}', '{"tenant":"default","context":".team"}'),
    (
        '{"keytype":"SCHEMA","subject":"gone","version":1,"magic":1}',
        '{"subject":"gone","version":1,"id":4,"schema":"\\"int\\"","deleted":false}',
    ),
    ('{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', '{"subject":"gone","version":1}'),
    (
        '{"keytype":"SCHEMA","subject":"purged","version":1,"magic":1}',
        '{"subject":"purged","version":1,"id":5,"schema":"\\"bytes\\"","deleted":false}',
    ),
    ('{"keytype":"SCHEMA","subject":"purged","version":1,"magic":1}', None),
    ('{"keytype":"SOMETHING_NEW","magic":9}', '{"future":true}'),
    ("not JSON", "at all"),
]

KARAPACE: Records = [
    ('{"keytype":"NOOP","magic":0}', ""),
    (
        # The order of fields that older versions of Karapace have.
        '{"subject":"orders","version":1,"magic":1,"keytype":"SCHEMA"}',
        f'{{"subject":"orders","version":1,"id":1,"schema":{json.dumps(_ORDER)},"deleted":false}}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
        '{"subject":"orders","version":2,"id":2,"schema":"{\\"type\\": \\"object\\"}","deleted":false,'
        '"schemaType":"JSON"}',
    ),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"NONE"}'),
    ('{"keytype":"CONFIG","subject":"orders","magic":0}', '{"compatibilityLevel":"FULL"}'),
    (
        '{"keytype":"SCHEMA","subject":"gone","version":1,"magic":1}',
        '{"subject":"gone","version":1,"id":3,"schema":"\\"int\\"","deleted":false}',
    ),
    ('{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', '{"subject":"gone","version":1}'),
]


def write(broker: KasparProcess, topic: str, records: Records) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(topic, num_partitions=1, replication_factor=1, config={"cleanup.policy": "compact"})
    admin.create_topics([new])[topic].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=value, partition=0)
    assert producer.flush(30) == 0


def entry(registry: Registry, path: str, *fields: str) -> dict[str, Any]:
    found = registry.get(path)
    return {field: found.get(field) for field in fields}


def test_topic_of_confluents_registry(broker: KasparProcess, settings: dict[str, str], tmp_path: Path) -> None:
    write(broker, settings["kafkastore.topic"], CONFLUENT)
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        assert registry.subjects() == [":.team:orders", "money", "orders", "payments"]
        assert registry.get("/schemas/ids/1")["schema"] == _ORDER
        assert entry(registry, "/subjects/payments/versions/1", "id", "schemaType", "references") == {
            "id": 3,
            "schemaType": "PROTOBUF",
            "references": [{"name": "money.proto", "subject": "money", "version": 1}],
        }
        assert registry.get("/subjects/money/versions/1/referencedby") == [3]
        assert registry.get("/config")["compatibilityLevel"] == "FULL"
        assert registry.get("/config/orders")["compatibilityLevel"] == "NONE"
        assert registry.get("/mode/frozen")["mode"] == "READONLY"
        assert registry.get("/contexts") == [".", ".team"]
        assert registry.get("/subjects/:.team:orders/versions/1")["metadata"]["properties"] == {"owner": "team"}
        assert registry.get("/subjects/gone/versions?deleted=true") == [1]
        assert registry.http.get("/schemas/ids/5").status_code == 404
        # The same schema keeps its id, and a new one gets the next that was never given.
        assert registry.register("more-orders", _ORDER) == 1
        assert registry.register("refunds", record_schema("Refund")) == 6


def test_topic_of_karapace(broker: KasparProcess, settings: dict[str, str], tmp_path: Path) -> None:
    write(broker, settings["kafkastore.topic"], KARAPACE)
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        assert registry.subjects() == ["orders"]
        assert registry.get("/subjects/orders/versions") == [1, 2]
        assert entry(registry, "/subjects/orders/versions/2", "id", "schemaType") == {"id": 2, "schemaType": "JSON"}
        assert registry.get("/config")["compatibilityLevel"] == "NONE"
        assert registry.get("/config/orders")["compatibilityLevel"] == "FULL"
        assert registry.register("refunds", record_schema("Refund")) == 4


def test_subject_with_very_many_versions_is_deleted_for_good(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    """Its tombstones are more than a batch may have by `message.max.bytes`."""
    count = 20_000
    versions: Records = [
        (
            f'{{"keytype":"SCHEMA","subject":"orders","version":{number},"magic":1}}',
            f'{{"subject":"orders","version":{number},"id":{number},"schema":"{{\\"type\\":\\"enum\\",\\"name\\":'
            f'\\"E{number}\\",\\"symbols\\":[\\"A\\"]}}","deleted":true}}',
        )
        for number in range(1, count + 1)
    ]
    write(broker, settings["kafkastore.topic"], versions)
    with Registry(tmp_path, broker.bootstrap, "registry", settings) as registry:
        wait_until(registry.leads, "it leads")
        deleted = registry.http.delete("/subjects/orders?permanent=true")
        assert deleted.status_code == 200, deleted.text
        assert deleted.json() == list(range(1, count + 1))
        assert registry.get("/subjects?deleted=true") == []
        assert registry.register("orders", _ORDER) == count + 1
