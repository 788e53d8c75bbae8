"""The console commands for records with schemas: a broker, a registry, and lines of JSON in between."""

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.testing import Broker
from kaspar.tools.console_consumer import command as console_consumer
from kaspar.tools.console_producer import command as console_producer
from kaspar.tools.schema_console import (
    avro_consumer,
    avro_producer,
    json_schema_consumer,
    json_schema_producer,
    protobuf_consumer,
    protobuf_producer,
)
from tests.peers.raw_client import RawClient

Main = Callable[[Sequence[str] | None], int]
RECORD = '{"type":"record","name":"shop.R","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","string"]}]}'
JSON_SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}}}'
PROTOBUF = 'syntax = "proto3"; message A { int32 a_b = 1; } message B { string s = 1; }'


class Format(NamedTuple):
    produce: Main
    consume: Main
    schema: str
    line: str
    printed: str


AVRO = Format(
    avro_producer.main,
    avro_consumer.main,
    RECORD,
    '{"a": 1, "b": {"string": "x"}}',
    '{"a":1,"b":{"string":"x"}}',
)
FORMATS = {
    "avro": AVRO,
    "json-schema": Format(json_schema_producer.main, json_schema_consumer.main, JSON_SCHEMA, '{"a": 1}', '{"a":1}'),
    "protobuf": Format(protobuf_producer.main, protobuf_consumer.main, PROTOBUF, '{"a_b": 1}', '{"aB":1}'),
}


class Done(NamedTuple):
    code: int
    output: str
    errors: str


class Console:
    def __init__(
        self,
        broker: Broker,
        registry: RegistryClient,
        topic: str,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        self.broker = broker
        self.registry = registry
        self.topic = topic
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        with RawClient(broker.port) as client:
            client.create_topic(topic)

    def produce(self, main: Main, lines: Sequence[str], *words: str, **properties: str) -> Done:
        """`_` in the name of a property stands for a dot."""
        text = "".join(f"{line}\n" for line in lines)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return self._run(main, [*words, "--timeout", "5"], "--reader-property", properties)

    def consume(self, main: Main, count: int, *words: str, **properties: str) -> Done:
        limits = ["--partition", "0", "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "20000"]
        return self._run(main, [*words, *limits], "--formatter-property", properties)

    def _run(self, main: Main, words: Sequence[str], option: str, properties: dict[str, str]) -> Done:
        given = {"schema.registry.url": self.broker.registry_url}
        given |= {name.replace("_", "."): value for name, value in properties.items()}
        pairs = [word for name, value in given.items() for word in (option, f"{name}={value}")]
        argv = ["--bootstrap-server", self.broker.bootstrap_servers, "--topic", self.topic, *words, *pairs]
        self._capfd.readouterr()
        code = main(argv)
        return Done(code, *self._capfd.readouterr())

    def schema_id(self, part: str = "value") -> int:
        """Of the latest version."""
        found = self.registry.latest(f"{self.topic}-{part}").id
        assert found is not None
        return found

    def data(self) -> list[bytes | None]:
        with RawClient(self.broker.port) as client:
            return client.read_values(self.topic)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Broker, RegistryClient]]:
    with Broker(process=True, registry=True) as broker:
        registry = RegistryClient(registry_config({"schema.registry.url": broker.registry_url}))
        yield broker, registry
        registry.close()


@pytest.fixture
def console(
    running: tuple[Broker, RegistryClient],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Console:
    topic = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return Console(*running, topic, monkeypatch, capfd)


@pytest.mark.parametrize("name", FORMATS)
def test_lines_become_records_and_lines_again(console: Console, name: str) -> None:
    form = FORMATS[name]
    assert console.produce(form.produce, [form.line], value_schema=form.schema) == Done(0, "", "")
    (data,) = console.data()
    assert data is not None
    assert data[:5] == b"\0" + console.schema_id().to_bytes(4)
    done = console.consume(form.consume, 1)
    assert (done.code, done.output) == (0, f"{form.printed}\n")


def test_keys_headers_nulls_and_ids(console: Console) -> None:
    lines = ['h:1|"k1"|{"a": 1, "b": null}', 'h:2|"k2"|NULL', 'h:3|NULL|{"a": 3, "b": null}']
    separators = {"key_separator": "|", "headers_delimiter": "|"}
    schemas = {"key_schema": '"string"', "value_schema": RECORD}
    flags = {"parse_key": "true", "parse_headers": "true", "null_marker": "NULL"}
    assert console.produce(AVRO.produce, lines, **separators, **schemas, **flags) == Done(0, "", "")
    shown = dict.fromkeys(("print_key", "print_headers", "print_partition", "print_offset", "print_schema_ids"), "true")
    done = console.consume(AVRO.consume, 3, key_separator=" ", schema_id_separator="#", null_literal="-", **shown)
    key, value = console.schema_id("key"), console.schema_id("value")
    assert done.output.splitlines() == [
        f'Partition:0 Offset:0 h:1 "k1"#{key} {{"a":1,"b":null}}#{value}',
        f'Partition:0 Offset:1 h:2 "k2"#{key} -#-',
        f'Partition:0 Offset:2 h:3 -#- {{"a":3,"b":null}}#{value}',
    ]


@pytest.mark.parametrize(
    ("serializer", "deserializer", "key"),
    [("StringSerializer", "StringDeserializer", "k"), ("LongSerializer", "LongDeserializer", "-7")],
)
def test_keys_without_a_schema(console: Console, serializer: str, deserializer: str, key: str) -> None:
    package = "org.apache.kafka.common.serialization."
    properties = {"parse_key": "true", "key_separator": "|", "key_serializer": package + serializer}
    assert console.produce(AVRO.produce, [f"{key}|1"], value_schema='"int"', **properties).code == 0
    done = console.consume(AVRO.consume, 1, print_key="true", key_deserializer=package + deserializer)
    assert done.output == f"{key}\t1\n"


def test_property_is_not_deprecated(console: Console) -> None:
    words = ("--property", 'value.schema="int"', "--property", "null.marker=x")
    assert console.produce(AVRO.produce, ["1"], *words) == Done(0, "", "")
    done = console.consume(AVRO.consume, 1, "--property", "print.offset=true")
    assert done.output == "Offset:0\t1\n"


def test_kafkas_own_commands_take_the_classes(console: Console) -> None:
    package = "io.confluent.kafka.formatter."
    reader = ("--line-reader", f"{package}AvroMessageReader")
    assert console.produce(console_producer.main, ["7"], *reader, value_schema='"int"').code == 0
    done = console.consume(console_consumer.main, 1, "--formatter", f"{package}AvroMessageFormatter")
    assert done.output == "7\n"


def test_schema_in_a_file_or_by_its_id(console: Console, tmp_path: object) -> None:
    file = f"{tmp_path}/schema.avsc"
    with open(file, "w") as written:
        written.write('"int"')
    assert console.produce(AVRO.produce, ["1"], value_schema_file=file).code == 0
    assert console.produce(AVRO.produce, ["2"], value_schema_id=str(console.schema_id())).code == 0
    assert console.consume(AVRO.consume, 2).output == "1\n2\n"


def test_schema_with_references(console: Console) -> None:
    console.registry.register("f", SchemaText(SchemaType.AVRO, '{"type":"fixed","name":"shop.F","size":1}'))
    schema = '{"type":"record","name":"shop.R","fields":[{"name":"f","type":"shop.F"}]}'
    references = json.dumps([{"name": "shop.F", "subject": "f", "version": 1}])
    assert console.produce(AVRO.produce, ['{"f": "x"}'], value_schema=schema, value_refs=references).code == 0
    assert console.consume(AVRO.consume, 1).output == '{"f":"x"}\n'


def test_another_message_of_the_schema(console: Console) -> None:
    form = FORMATS["protobuf"]
    properties = {"value_schema": PROTOBUF, "value_schema_full_name": "B"}
    assert console.produce(form.produce, ['{"s": "x"}'], **properties).code == 0
    assert console.consume(form.consume, 1).output == '{"s":"x"}\n'


def test_subject_by_the_name_of_the_record(console: Console) -> None:
    strategy = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
    properties = {"value_schema": RECORD, "value_subject_name_strategy": strategy}
    assert console.produce(AVRO.produce, ['{"a": 1, "b": null}'], **properties).code == 0
    assert f"{console.topic}-shop.R" in console.registry.subjects()


def test_schema_that_may_not_be_registered(console: Console) -> None:
    done = console.produce(AVRO.produce, ["1"], value_schema='"int"', auto_register="false")
    assert done.code == 1
    assert f"The schema of the value cannot be used: Subject '{console.topic}-value' not found." in done.errors
    assert f"{console.topic}-value" not in console.registry.subjects()


def test_latest_version_instead_of_the_given_schema(console: Console) -> None:
    console.registry.register(f"{console.topic}-value", SchemaText(SchemaType.AVRO, '"long"'))
    properties = {"auto_register": "false", "use_latest_version": "true"}
    assert console.produce(AVRO.produce, [str(2**40)], value_schema='"int"', **properties).code == 0
    assert console.consume(AVRO.consume, 1).output == f"{2**40}\n"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (['{"a": 1, "b": null}', '{"a": 2}'], "Line number 2: The field b of the record shop.R is missing."),
        (["{"], "Line number 1: Input data was truncated."),
        (['{"a": 1, "b": "x"}'], "Line number 1: b: Expected a value of a union"),
    ],
)
def test_line_that_does_not_fit_ends_the_command(console: Console, lines: list[str], problem: str) -> None:
    done = console.produce(AVRO.produce, lines, value_schema=RECORD)
    assert done.code == 1
    assert f"Error deserializing json {lines[-1]} to Avro of schema {RECORD}" in done.errors
    assert problem in done.errors
    assert len(console.data()) == len(lines) - 1


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({}, "Must provide the value schema in either value.schema, value.schema.id, or value.schema.file"),
        ({"value_schema_id": "x"}, "Error parsing value.schema.id as int"),
        ({"value_schema_id": "77777"}, "Error retrieving schema for id 77777: Schema 77777 not found"),
        ({"value_schema_file": "/nowhere"}, "Error reading schema from /nowhere"),
        ({"value_schema": '"int"', "value_refs": "{}x"}, "value.refs must be a list of references"),
        ({"value_schema": '"int"', "parse_key": "true"}, "Must provide the key schema"),
        ({"value_schema": '"int"', "parse_key": "true", "key_serializer": "x.Y"}, "Error initializing key.serializer"),
        ({"value_schema": "nonsense"}, "The schema of the value cannot be used"),
        (
            {"value_schema": '"int"', "schema_registry_url": "x"},
            "Invalid value x for configuration schema.registry.url",
        ),
    ],
)
def test_wrong_properties(console: Console, properties: dict[str, str], problem: str) -> None:
    done = console.produce(AVRO.produce, ["1"], **properties)
    assert done.code == 1
    assert problem in done.errors
    assert "Traceback" not in done.errors


def test_record_without_a_schema(console: Console) -> None:
    with RawClient(console.broker.port) as client:
        client.produce(console.topic, [b"plain", b"\0\0\1\0\0x"])
    assert console.produce(AVRO.produce, ["1"], value_schema='"int"').code == 0
    done = console.consume(AVRO.consume, 3)
    assert done.code == 1
    assert f"in {console.topic}-0 at offset 0: Unknown magic byte 112" in done.errors
    done = console.consume(AVRO.consume, 3, "--skip-message-on-error")
    assert (done.code, done.output) == (0, "1\n")
    assert "at offset 1: Schema 65536 not found" in done.errors
