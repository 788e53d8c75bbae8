"""How keys and values are printed: as text or numbers, or as the records of an internal topic."""

import base64
import contextlib
import struct
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.protocol import codec
from kaspar.protocol.schema import Message, VersionRange
from kaspar.records import Record
from kaspar.records.control import ControlType
from kaspar.tools.dump_log.errors import CannotDump
from kaspar.tools.internal_records import (
    GROUP_METADATA,
    InternalRecord,
    decode_group_record,
    decode_transaction_record,
    record_type,
)
from kaspar.tools.message_json import JsonObject, json_line, message_json

Decode = Callable[[Record], tuple[str | None, str | None]]
"""The text for a record's key and value; None prints nothing."""

_CONSUMER: Final = "consumer"
DEFAULT_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")


def _integer(octets: bytes) -> str:
    return str(_number(">i", octets))


def _long(octets: bytes) -> str:
    return str(_number(">q", octets))


def _number(layout: str, octets: bytes) -> int:
    if len(octets) < struct.calcsize(layout):
        raise CannotDump(f"{len(octets)} bytes are no number of {struct.calcsize(layout)} bytes")
    number: int = struct.unpack_from(layout, octets)[0]
    return number


_DECODERS: Final[dict[str, Callable[[bytes], str]]] = {
    DEFAULT_DECODER: _text,
    "org.apache.kafka.tools.api.DefaultDecoder": lambda octets: octets.hex(" "),
    "org.apache.kafka.tools.api.IntegerDecoder": _integer,
    "org.apache.kafka.tools.api.LongDecoder": _long,
}


def by_classes(key_decoder: str, value_decoder: str) -> Decode:
    """Decoders by Kafka's class names. Raises CannotDump."""
    for name in (value_decoder, key_decoder):
        if name not in _DECODERS:
            known = ", ".join(_DECODERS)
            raise CannotDump(f"Failed to load decoder class {name}: there are {known}")
    read_key, read_value = _DECODERS[key_decoder], _DECODERS[value_decoder]

    def decode(record: Record) -> tuple[str | None, str | None]:
        key = None if record.key is None else read_key(record.key)
        return key, None if record.value is None else read_value(record.value)

    return decode


def group_records(record: Record) -> tuple[str | None, str | None]:
    return _coordinator_record(record, _with_consumer_protocol)


def transaction_records(record: Record) -> tuple[str | None, str | None]:
    return _coordinator_record(record, decode_transaction_record)


def _coordinator_record(
    record: Record, read: Callable[[bytes, bytes | None], InternalRecord | None]
) -> tuple[str | None, str | None]:
    if record.key is None:
        raise CannotDump(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        found = read(record.key, record.value)
        if found is None:
            return f"Unknown record type {record_type(record.key)} at offset {record.offset}, skipping.", None
    except MalformedBytes as problem:
        return f"Error at offset {record.offset}, skipping. {problem}", None
    key = json_line({"type": str(found.type), "data": found.key})
    if found.value is None:
        return key, "<DELETE>"
    return key, json_line({"version": str(found.version), "data": found.value})


def _with_consumer_protocol(key: bytes, value: bytes | None) -> InternalRecord | None:
    """Also decodes the subscriptions and assignments of a classic group's members, if they are Kafka's consumers."""
    record = decode_group_record(key, value)
    if record is None or record.type != GROUP_METADATA or record.value is None:
        return record
    if record.value["protocolType"] == _CONSUMER:
        for member in record.value["members"]:
            _show_consumer_protocol(member)
    return record


def _show_consumer_protocol(member: JsonObject) -> None:
    from kaspar.protocol.consumer_protocol import read_assignment, read_subscription

    readers: dict[str, Callable[[bytes], Message]] = {"subscription": read_subscription, "assignment": read_assignment}
    for name, read in readers.items():
        octets = base64.b64decode(member[name])
        with contextlib.suppress(MalformedBytes):  # if malformed, it is shown as bytes
            member[name] = message_json(read(octets), record_type(octets))


def metadata_records(record: Record) -> tuple[str | None, str | None]:
    """Records of KRaft's metadata log, which have no keys."""
    from kaspar.metadata.kraft.frames import read_frame, read_message

    try:
        frame = read_frame(record.value)
        message = read_message(record.value, frame)
    except KasparError as problem:
        return None, f"Error at {record.offset}, skipping. {problem}"
    shown = {
        "type": _upper_snake_case(frame.kind.__name__),
        "version": frame.version,
        "data": message_json(message, frame.version),
    }
    return None, json_line(shown)


def _upper_snake_case(name: str) -> str:
    return "".join(f"_{each}" if each.isupper() else each.upper() for each in name).lstrip("_")


def control_text(kind: ControlType, value: bytes) -> str:
    """The text of a control record of KRaft."""
    title, message_type = _control_message(kind)
    (version,) = struct.unpack_from(">h", value) if len(value) >= 2 else (0,)
    if version not in VersionRange.parse(message_type.SCHEMA.versions):
        raise CannotDump(f"Can't read version {version} of {message_type.__name__}")
    message, _ = codec.read(message_type, version, value, 0)
    return f" {title} {json_line(message_json(message, version))}"


def _control_message(kind: ControlType) -> tuple[str, type[Message]]:
    from kaspar.protocol.messages.k_raft_version_record import KRaftVersionRecord
    from kaspar.protocol.messages.leader_change_message import LeaderChangeMessage
    from kaspar.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
    from kaspar.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
    from kaspar.protocol.messages.voters_record import VotersRecord

    return {
        ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
        ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
        ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
        ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
        ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
    }[kind]
