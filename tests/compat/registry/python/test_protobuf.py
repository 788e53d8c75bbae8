"""confluent-kafka-python's Protobuf serializers against the registry: descriptors, with imports as references."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryError, header_schema_id_serializer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.compat.registry.passing import Pass, key_of, value_of
from tests.compat.registry.protoc import descriptor_set
from tests.compat.registry.python.flavours import PROTOBUF, Flavour

FILES = {
    "scalars.proto": """
        syntax = "proto3";
        package shop;
        import "google/protobuf/descriptor.proto";
        message Scalars {
          string text = 1; bool flag = 2; bytes raw = 3; double d = 4; float f = 5; int32 i = 6; sint64 s = 7;
          fixed32 x = 8; optional uint64 u = 9; map<string, int32> counts = 10;
        }
        extend google.protobuf.FieldOptions { bool sensitive = 50123; }
    """,
    "nested.proto": """
        syntax = "proto3";
        package shop.nested;
        import "google/protobuf/timestamp.proto";
        message UserId { oneof id { string name = 1; int32 number = 2; } }
        message Order {
          enum Status { NEW = 0; PAID = 1; }
          message Line { string article = 1; message Price { int64 cents = 1; } Price price = 2; }
          UserId user = 1; repeated Line lines = 2; google.protobuf.Timestamp created = 3; Status status = 4;
        }
    """,
    "common/money.proto": 'syntax = "proto3"; package common; message Money { int64 cents = 1; string currency = 2; }',
    "public.proto": 'syntax = "proto3"; package shop; import public "common/money.proto"; message Empty {}',
    "dependent.proto": """
        syntax = "proto3";
        package shop;
        import "nested.proto";
        import "public.proto";
        message Dependent { nested.Order order = 1; common.Money money = 2; bool active = 3; }
    """,
    "old.proto": """
        syntax = "proto2";
        package shop.old;
        message Legacy { required string name = 1; optional int32 age = 2 [default = 7]; extensions 100 to 199; }
    """,
    "v1/evolving.proto": 'syntax = "proto3"; package shop; message Evolving { string name = 1; }',
    "v2/evolving.proto": 'syntax = "proto3"; package shop; message Evolving { string name = 1; int32 more = 2; }',
    "v3/evolving.proto": 'syntax = "proto3"; package shop; message Evolving { int32 name = 1; int32 more = 2; }',
}

Messages = Callable[..., Any]


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Messages:
    """The class of a message of a file, such as protoc makes for Python programs; each file in a pool of its own."""
    made: dict[str, descriptor_pool.DescriptorPool] = {}

    def message(file: str, name: str, root: str = "") -> Any:
        key = root + file
        if key not in made:
            made[key] = _pool(tmp_path_factory.mktemp("proto"), file, root)
        return message_factory.GetMessageClass(made[key].FindMessageTypeByName(name))

    return message


def _pool(folder: Path, file: str, root: str) -> descriptor_pool.DescriptorPool:
    """`root`: the folder of the files that protoc sees as its own."""
    files = {name.removeprefix(root): text for name, text in FILES.items() if name.startswith(root)}
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set(folder, files, file)).file:
        pool.Add(each)
    return pool


def serializer(flavour: Flavour, message: Any, **conf: Any) -> Any:
    return flavour.make(PROTOBUF, "ProtobufSerializer", message, flavour.raw_client, conf=conf)


def deserializer(flavour: Flavour, message: Any, **conf: Any) -> Any:
    return flavour.make(PROTOBUF, "ProtobufDeserializer", message, conf, flavour.raw_client)


@pytest.mark.parametrize(
    ("file", "name", "fields"),
    [
        (
            "scalars.proto",
            "shop.Scalars",
            {"text": "ä", "flag": True, "raw": b"\x00\xff", "d": 1.5, "s": -7, "u": 0, "counts": {"a": 1}},
        ),
        ("nested.proto", "shop.nested.Order", {"user": {"name": "x"}, "status": 1, "lines": [{"article": "a"}]}),
        ("nested.proto", "shop.nested.Order.Line.Price", {"cents": 7}),
        ("dependent.proto", "shop.Dependent", {"order": {"status": 1}, "money": {"cents": 5}, "active": True}),
        ("old.proto", "shop.old.Legacy", {"name": "x"}),
    ],
)
def test_messages_pass(
    flavour: Flavour, topic: str, through_kafka: Pass, messages: Messages, file: str, name: str, fields: dict[str, Any]
) -> None:
    message = messages(file, name)
    sent = message(**fields)
    data, _ = through_kafka(serializer(flavour, message)(sent, value_of(topic)))
    flavour.client.clear_caches()
    assert deserializer(flavour, message)(data, value_of(topic)) == sent
    latest = flavour.client.get_latest_version(f"{topic}-value")
    assert latest.schema.schema_type == "PROTOBUF"
    assert f"message {name.split('.')[-1]} {{" in latest.schema.schema_str
    flavour.client.clear_caches()
    assert serializer(flavour, message, **{"auto.register.schemas": False})(sent, value_of(topic)) == data


@pytest.mark.parametrize(
    ("file", "name", "references"),
    [
        ("nested.proto", "shop.nested.Order", []),
        ("public.proto", "shop.Empty", ["common/money.proto"]),
        ("dependent.proto", "shop.Dependent", ["nested.proto", "public.proto"]),
    ],
)
def test_imports_are_references(
    flavour: Flavour, topic: str, messages: Messages, file: str, name: str, references: list[str]
) -> None:
    """The client registers each imported file under its name, but no well-known one."""
    message = messages(file, name)
    data = serializer(flavour, message)(message(), key_of(topic))
    flavour.client.clear_caches()
    schema = flavour.client.get_schema(int.from_bytes(data[1:5], "big"))
    assert sorted(each.name for each in schema.references) == references
    for each in references:
        assert flavour.client.get_latest_version(each).schema.schema_type == "PROTOBUF"


def test_known_types_can_be_registered_too(flavour: Flavour, topic: str, messages: Messages) -> None:
    message = messages("nested.proto", "shop.nested.Order")
    data = serializer(flavour, message, **{"skip.known.types": False})(message(), value_of(topic))
    flavour.client.clear_caches()
    schema = flavour.client.get_schema(int.from_bytes(data[1:5], "big"))
    assert [each.name for each in schema.references] == ["google/protobuf/timestamp.proto"]


def test_text_and_descriptor_are_one_schema(flavour: Flavour, topic: str, messages: Messages) -> None:
    message = messages("old.proto", "shop.old.Legacy")
    data = serializer(flavour, message)(message(name="x"), value_of(topic))
    text = Schema(FILES["old.proto"], "PROTOBUF")
    assert flavour.client.register_schema(f"{topic}-value", text) == int.from_bytes(data[1:5], "big")
    flavour.client.clear_caches()
    serialized = flavour.client.get_schema(int.from_bytes(data[1:5], "big"), fmt="serialized")
    assert "syntax" not in serialized.schema_str


def test_a_file_evolves(flavour: Flavour, topic: str, messages: Messages) -> None:
    first, second, third = (messages("evolving.proto", "shop.Evolving", f"v{version}/") for version in (1, 2, 3))
    old = serializer(flavour, first)(first(name="x"), value_of(topic))
    new = serializer(flavour, second)(second(name="x", more=1), value_of(topic))
    assert flavour.client.get_versions(f"{topic}-value") == [1, 2]
    assert deserializer(flavour, second)(old, value_of(topic)) == second(name="x")
    assert deserializer(flavour, first)(new, value_of(topic)).name == "x"
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as caught:
        serializer(flavour, third)(third(name=1), value_of(topic))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    assert serializer(flavour, second, **conf)(second(name="x", more=1), value_of(topic)) == new


def test_references_by_subject_name(flavour: Flavour, topic: str) -> None:
    flavour.client.register_schema(f"{topic}-money", Schema(FILES["common/money.proto"], "PROTOBUF"))
    user = 'syntax = "proto3"; import "common/money.proto"; message Bill { common.Money total = 1; }'
    reference = SchemaReference("common/money.proto", f"{topic}-money", 1)
    schema_id = flavour.client.register_schema(f"{topic}-bill", Schema(user, "PROTOBUF", [reference]))
    assert flavour.client.get_referenced_by(f"{topic}-money", 1) == [schema_id]
    with pytest.raises(SchemaRegistryError) as caught:
        flavour.client.register_schema(f"{topic}-other", Schema(user, "PROTOBUF"))
    assert (caught.value.http_status_code, caught.value.error_code) == (422, 42201)


def test_the_schema_can_be_named_in_a_header(
    flavour: Flavour, topic: str, through_kafka: Pass, messages: Messages
) -> None:
    message = messages("nested.proto", "shop.nested.Order.Line")
    context, conf = value_of(topic), {"schema.id.serializer": header_schema_id_serializer}
    sent = message(article="x")
    data, headers = through_kafka(serializer(flavour, message, **conf)(sent, context), context.headers)
    flavour.client.clear_caches()
    assert deserializer(flavour, message)(data, value_of(topic, headers)) == sent


def test_another_message_is_refused(flavour: Flavour, topic: str, messages: Messages) -> None:
    order, legacy = messages("nested.proto", "shop.nested.Order"), messages("old.proto", "shop.old.Legacy")
    with pytest.raises(ValueError, match="message must be of type"):
        serializer(flavour, order)(legacy(name="x"), value_of(topic))
