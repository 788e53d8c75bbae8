"""Files that every schema can import without a reference, as in Confluent's registry: protobuf's own (google/protobuf),
Google's common types (google/type) and Confluent's (confluent)."""

import importlib.util
from pathlib import Path
from typing import Final

# The annotations of Confluent's clients, and their decimal and variant types.
_META: Final = """\
syntax = "proto3";
package confluent;

import "google/protobuf/descriptor.proto";

option go_package = "../confluent";

message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
  repeated Rule rules = 4;
}
message Rule {
  string name = 1;
  string doc = 2;
  string expr = 3;
  string sql = 4;
}

extend google.protobuf.FileOptions {
  Meta file_meta = 1088;
}
extend google.protobuf.MessageOptions {
  Meta message_meta = 1088;
}
extend google.protobuf.FieldOptions {
  Meta field_meta = 1088;
}
extend google.protobuf.EnumOptions {
  Meta enum_meta = 1088;
}
extend google.protobuf.EnumValueOptions {
  Meta enum_value_meta = 1088;
}
"""

_DECIMAL: Final = """\
syntax = "proto3";
package confluent.type;

message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""

_VARIANT: Final = """\
syntax = "proto3";
package confluent.type;

message Variant {
  bytes metadata = 1;
  bytes value = 2;
}
"""

CONFLUENT_FILES: Final = {
    "confluent/meta.proto": _META,
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": _VARIANT,
}

_PROTOBUF: Final = "google/protobuf"

# The prefix of the options with which Confluent's clients annotate schemas.
CONFLUENT_OPTIONS: Final = "confluent."


def protoc_folder() -> Path:
    """Where grpcio-tools is installed. It is not imported, because only the compiler's process needs it."""
    return _folder_of("grpc_tools")


def include_paths() -> list[str]:
    """protoc's mapping of the folders of well-known files, and no others: an import must not reach anything else."""
    return [f"{_PROTOBUF}={_protobuf_folder()}", f"google/type={_folder_of('google.type')}"]


def is_protobufs_own(name: str) -> bool:
    """Whether protoc brings this file. A reference cannot replace it, because it defines the meaning of descriptors."""
    folder, _, file = name.rpartition("/")
    return folder == _PROTOBUF and (_protobuf_folder() / file).is_file()


def _protobuf_folder() -> Path:
    return protoc_folder() / "_proto" / _PROTOBUF


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"Protobuf schemas need the package {package}", name=package)
    return Path(next(iter(spec.submodule_search_locations)))
