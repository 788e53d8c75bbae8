"""The message classes of descriptors, in their own pool.

In the process's default pool, any module may have defined extensions of options (confluent-kafka's serializers do), and
a descriptor would be decoded differently with and without them.
"""

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

DESCRIPTOR_FILE: Final = "google/protobuf/descriptor.proto"


def private_pool(serialized_files: Iterable[bytes]) -> Any:
    """A pool with these serialized FileDescriptorProtos, imported files before the files that import them."""
    pool = DescriptorPool()
    for file in serialized_files:
        pool.AddSerializedFile(file)
    return pool


def class_in(pool: Any, name: str) -> Any:
    """The class of a message of descriptor.proto, which the pool has."""
    return GetMessageClass(pool.FindMessageTypeByName(f"google.protobuf.{name}"))


_POOL: Final = private_pool([descriptor_pb2.DESCRIPTOR.serialized_pb])
FileDescriptorProto: Final = class_in(_POOL, "FileDescriptorProto")
FileDescriptorSet: Final = class_in(_POOL, "FileDescriptorSet")
