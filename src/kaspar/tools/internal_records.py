"""Records of internal topics as JSON, with the names that Kafka's own generated converters give their fields.

Used by commands that show such records to people: kafka-dump-log, and the formatters of kafka-console-consumer.
"""

import base64
import dataclasses
import json
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.base.ids import uuid_to_text
from kaspar.coordination.record_kinds import KEY_VERSION, RecordKinds
from kaspar.protocol.schema import NO_TAG, Message, VersionRange

_NUMBER: Final = struct.Struct(">h")
_CONSUMER: Final = "consumer"


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """`key_type` is the number that begins the key. A record without a value deletes its key."""

    key_type: int
    key: dict[str, Any]
    value_version: int | None
    value: dict[str, Any] | None


class UnknownRecordType(KasparError):
    def __init__(self, number: int) -> None:
        super().__init__(f"records of type {number} are not known")
        self.number = number


def group_record(key: bytes, value: bytes | None) -> InternalRecord:
    """A record of `__consumer_offsets`. Raises UnknownRecordType and MalformedBytes."""
    from kaspar.groups.records import KINDS, GroupMetadataKey

    record = _record(KINDS, key, value)
    if record.key_type == _number_of(KINDS, GroupMetadataKey) and record.value is not None:
        _show_protocol(record.value)
    return record


def transaction_record(key: bytes, value: bytes | None) -> InternalRecord:
    """A record of `__transaction_state`. Raises UnknownRecordType and MalformedBytes."""
    from kaspar.transactions.records import KINDS

    return _record(KINDS, key, value)


def message_json(message: Message, version: int) -> dict[str, Any]:
    """The fields of this version. Tagged ones are left out while they have their default, as on the wire."""
    defaults = {field.name: field.default for field in dataclasses.fields(message)}  # type: ignore[arg-type]
    shown = {}
    for field in message.SCHEMA.fields:
        value = getattr(message, field.name)
        if version not in VersionRange.parse(field.versions):
            continue
        if field.tag != NO_TAG and value == defaults[field.name]:
            continue
        shown[_camel_case(field.name)] = _value_json(value, version)
    return shown


def json_text(value: object) -> str:
    """As Jackson writes it: no spaces, Java's notation of floating-point numbers."""
    match value:
        case dict():
            return "{" + ",".join(f"{json_text(name)}:{json_text(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case float():
            return java_double(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def java_double(number: float) -> str:
    """As Java's Double.toString."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        text = repr(number)
        return text if "e" not in text else f"{number:f}"
    if number in (float("inf"), float("-inf")) or number != number:
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(number), "NaN")
    digits, _, exponent = f"{number!r}".partition("e")
    if not exponent:
        digits, _, exponent = f"{number:.16e}".partition("e")
        digits = digits.rstrip("0")
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction or '0'}E{int(exponent)}"


def _record(kinds: RecordKinds, key: bytes, value: bytes | None) -> InternalRecord:
    number = _number(key, "key")
    with _explained(number, "key"):
        read_key = kinds.decode(key, None)
    if read_key is None:
        raise UnknownRecordType(number)
    shown_key = message_json(read_key.key, KEY_VERSION)
    if value is None:
        return InternalRecord(number, shown_key, None, None)
    version = _number(value, "value")
    with _explained(version, "value"):
        stored = kinds.decode(key, value)
    assert stored is not None, "the key is known"
    assert stored.value is not None, "it has a value"
    return InternalRecord(number, shown_key, version, message_json(stored.value, version))


@contextmanager
def _explained(version: int, part: str) -> Iterator[None]:
    """With Kafka's sentence, as its CoordinatorRecordSerde has it."""
    try:
        yield
    except MalformedBytes as problem:
        raise MalformedBytes(
            f"Could not read record with version {version} from {part}'s buffer due to: {problem}."
        ) from problem


def _number(octets: bytes, part: str) -> int:
    if len(octets) < _NUMBER.size:
        raise MalformedBytes(f"Could not read version from {part}'s buffer.")
    number: int = _NUMBER.unpack_from(octets)[0]
    return number


def _number_of(kinds: RecordKinds, key: type[Message]) -> int:
    return next(kind.numbers[-1] for kind in kinds if kind.key is key)


def _show_protocol(group: dict[str, Any]) -> None:
    """Show what consumers told each other, where it is the protocol of Kafka's consumers."""
    from kaspar.groups.consumer.protocol import read_assignment, read_subscription

    if group.get("protocolType") != _CONSUMER:
        return
    readers: dict[str, Callable[[bytes], Message]] = {"subscription": read_subscription, "assignment": read_assignment}
    for member in group["members"]:
        for name, read in readers.items():
            octets = base64.b64decode(member[name])
            try:
                member[name] = message_json(read(octets), _NUMBER.unpack_from(octets)[0])
            except (MalformedBytes, struct.error):
                continue  # shown as bytes


def _value_json(value: object, version: int) -> object:
    match value:
        case Message():
            return message_json(value, version)
        case tuple():
            return [_value_json(each, version) for each in value]
        case uuid.UUID():
            return uuid_to_text(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case _:
            return value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
