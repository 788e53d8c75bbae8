"""What confluent-kafka-python registers: the descriptor of code that protoc generated, and those of its imports."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka.schema_registry.common.protobuf import _schema_to_str, _str_to_proto
from google.protobuf.descriptor_pb2 import FieldOptions, FileDescriptorProto

from kaspar.schemas.protobuf import parse
from tests.unit.schemas.protobuf import files
from tests.unit.schemas.protobuf.descriptors import registered_by_python

DEPENDENCY = """\
syntax = "proto3";
package kaspar.tests.client;

import "google/protobuf/descriptor.proto";

message Address {
  string street_name = 1;
}

extend google.protobuf.FieldOptions {
  repeated string note = 51234;
}
"""

SCHEMA = """\
syntax = "proto3";
package kaspar.tests.client;

import "kaspar_client_address.proto";
import "google/protobuf/timestamp.proto";

option java_package = "com.example";

message Order {
  int32 order_id = 1;
  optional string comment = 2 [
    deprecated = true,
    (note) = "a",
    (note) = "b"
  ];
  map<string, Line> lines = 3;
  google.protobuf.Timestamp created_at = 4;
  repeated Address addresses = 5;

  oneof payment {
    string card = 6;
    State state = 7;
  }

  message Line {
    int64 cents = 1;
  }
  enum State {
    UNKNOWN = 0;
    PAID = 1;
  }
}
"""

FILES = {"kaspar_client_address.proto": DEPENDENCY, "kaspar_client_order.proto": SCHEMA}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """Modules by the names of their files."""
    folder = tmp_path_factory.mktemp("generated")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}"]
    subprocess.run([*protoc, *FILES], check=True, cwd=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return {name: _loaded(folder / name.replace(".proto", "_pb2.py")) for name in FILES}


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def registered(module: ModuleType) -> str:
    return str(_schema_to_str(module.DESCRIPTOR))


def test_client_and_text_have_one_canonical_text(generated: dict[str, ModuleType]) -> None:
    dependency, schema = (registered(generated[name]) for name in FILES)
    reference = next(iter(FILES))
    assert parse(dependency, {}).canonical == parse(DEPENDENCY, {}).canonical == DEPENDENCY
    assert parse(schema, {reference: dependency}).canonical == SCHEMA
    assert parse(SCHEMA, {reference: DEPENDENCY}).canonical == SCHEMA


def test_client_reads_the_serialized_form(generated: dict[str, ModuleType]) -> None:
    read = _str_to_proto("kaspar_client_address.proto", parse(DEPENDENCY, {}).formatted("serialized"))
    own = FileDescriptorProto()
    generated["kaspar_client_address.proto"].DESCRIPTOR.CopyToProto(own)
    assert read == own


def test_extensions_that_the_client_defines_in_this_process_make_no_difference() -> None:
    """The client's module of `confluent/meta.proto` extends the options of the process's default pool."""
    known = [field.full_name for field in FieldOptions.DESCRIPTOR.file.pool.FindAllExtensions(FieldOptions.DESCRIPTOR)]
    assert "confluent.field_meta" in known
    schema = parse(files.PROTO3, {})
    assert parse(registered_by_python(schema), {}).canonical == schema.canonical
