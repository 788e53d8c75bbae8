"""Protobuf schemas: proto2, proto3 and editions, as .proto text or as the base64 of a descriptor.

protoc parses them; printing descriptors as text and comparing them is done here.
"""

from kaspar.schemas.protobuf.compatibility import incompatibilities
from kaspar.schemas.protobuf.schema import ProtobufSchema, parse

__all__ = ["ProtobufSchema", "incompatibilities", "parse"]
