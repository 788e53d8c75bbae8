"""Records whose schemas are in a registry, as JSON."""

import io
import json
from collections.abc import Iterator

import pytest

from kaspar.cli.consuming.outputs import Output, show
from kaspar.cli.consuming.pretty import NO_COLOURS
from kaspar.cli.consuming.printing import Printer
from kaspar.cli.consuming.schemas import SchemaDecoder
from kaspar.cli.records.record import RawRecord
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryUnavailable
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.records import RecordWriter, record_writer
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.wire_format import VALUE_HEADER

REGISTRY = {"schema.registry.url": "mock://consume"}
TRADE = json.dumps({"type": "record", "name": "Trade", "fields": [{"name": "size", "type": "long"}]})


@pytest.fixture
def registry() -> Iterator[RegistryClient]:
    yield RegistryClient(registry_config(REGISTRY))
    drop_mock_registry("consume")


def writer(registry: RegistryClient, subject: str, schema: str) -> RecordWriter:
    return record_writer(registry.register(subject, SchemaText(SchemaType.AVRO, schema)))


def decoded(key: bytes | None, value: bytes | None, *headers: tuple[str, bytes]) -> tuple[bytes | None, bytes | None]:
    decoder = SchemaDecoder(REGISTRY, reads_keys=True, reads_values=True)
    found = decoder.decode(RawRecord("t", 0, 0, 0, key, value, headers))
    return found.key, found.value


def test_key_is_text_and_value_is_json(registry: RegistryClient) -> None:
    key = writer(registry, "t-key", '"string"').to_bytes("ada")
    value = writer(registry, "t-value", TRADE).to_bytes({"size": 1})
    assert decoded(key, value) == (b"ada", b'{"size": 1}')


def test_guid_in_a_header_is_followed(registry: RegistryClient) -> None:
    value, header = writer(registry, "t-value", TRADE).to_bytes_and_header({"size": 1})
    assert decoded(None, value, (VALUE_HEADER, header)) == (None, b'{"size": 1}')


@pytest.mark.parametrize("data", [None, b"", b"\0", b"text", b'{"size": 1}'])
def test_what_has_no_schema_stays_as_it_is(data: bytes | None) -> None:
    assert decoded(data, data) == (data, data)


def test_key_that_is_a_number_stays_one(registry: RegistryClient) -> None:
    assert decoded((7).to_bytes(8), None) == ((7).to_bytes(8), None)


def test_type_of_its_own_is_not_overridden(registry: RegistryClient) -> None:
    value = writer(registry, "t-value", TRADE).to_bytes({"size": 1})
    raw = RawRecord("t", 0, 0, 0, value, value)
    assert SchemaDecoder(REGISTRY, reads_keys=False, reads_values=False).decode(raw) == raw


def test_value_that_no_schema_reads_is_reported(registry: RegistryClient, capsys: pytest.CaptureFixture[str]) -> None:
    good = writer(registry, "t-value", TRADE).to_bytes({"size": 1})
    decoder = SchemaDecoder(REGISTRY, reads_keys=True, reads_values=True)
    out = io.BytesIO()
    shown = show(Output.VALUE, meta=False, separator="\t", colours=NO_COLOURS, width=80)
    printer = Printer(shown, decode=decoder.decode, out=out)
    for offset, value in enumerate((good, good[:5], b"\0\0\0\1\0", good)):
        printer.print(RawRecord("t", 0, offset, 0, None, value))
    assert out.getvalue() == b'{"size": 1}\n' * 2
    assert printer.report() == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].startswith("kaspar: t/0@1: The bytes are not Avro of the schema")
    assert errors[1] == "kaspar: t/0@2: Schema 256 not found"


def test_registry_that_is_away_ends_the_command() -> None:
    away = {"schema.registry.url": "http://127.0.0.1:1", "max.retries": "0"}
    decoder = SchemaDecoder(away, reads_keys=True, reads_values=True)
    for raw in (RawRecord("t", 0, 0, 0, b"\0\0\0\0\1x", None), RawRecord("t", 0, 0, 0, None, b"\0\0\0\0\1x")):
        with pytest.raises(RegistryUnavailable):
            decoder.decode(raw)
