"""Counts the error codes in a response, like Kafka's `AbstractResponse.errorCounts`.

The codes are the fields of the version whose names end in `error_code`, at every depth, including success (NONE).
Kafka's classes count exactly these, with the few exceptions below. A test compares all of them with Kafka's own
(tests/compat/test_error_counts.py).
"""

import importlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kaspar.protocol.schema import Field, Message, VersionRange

ErrorCounts = defaultdict[int, int]
"""How often each code occurs."""

CountErrors = Callable[[Any, ErrorCounts], None]
"""Adds the codes of a response to the counts."""

_SUFFIX: Final = "error_code"
_NONE: Final = 0

_NOT_COUNTED: Final = frozenset(
    {
        ("AssignReplicasToDirsResponse", "directories"),
        ("CreatableTopicResult", "topic_config_error_code"),
        ("DeleteAclsFilterResult", "matching_acls"),
        ("DescribeUserScramCredentialsResponse", "error_code"),
        ("MetadataResponse", "error_code"),
        ("PartitionData", "acknowledge_error_code"),  # of ShareFetch
    }
)
"""Fields that Kafka does not count, including everything in them."""

_COUNTED_AT_EVERY_VERSION: Final = frozenset({"DescribeLogDirsResponse", "ElectLeadersResponse", "FetchResponse"})
"""Responses whose own code counts as NONE at the versions that lack it."""


_NONE_IF_EMPTY: Final = frozenset({"AddPartitionsToTxnResponse", "FindCoordinatorResponse"})
"""Responses that count as one NONE if they contain no code."""


class _Nested(NamedTuple):
    name: str
    is_array: bool
    count_one: CountErrors


_counters: dict[tuple[type[Message], int], CountErrors | None] = {}


def error_counter(message_class: type[Message], version: int) -> CountErrors | None:
    """The function that counts the codes of such messages (responses or structs inside one). None if they have none."""
    key = (message_class, version)
    if key not in _counters:
        _counters[key] = _make_counter(message_class, version)
    return _counters[key]


def _make_counter(message_class: type[Message], version: int) -> CountErrors | None:
    counted = [field for field in message_class.SCHEMA.fields if _is_counted(message_class, field, version)]
    codes = tuple(field.name for field in counted if field.name.endswith(_SUFFIX))
    nested = tuple(filter(None, (_nested(message_class, field, version) for field in counted)))
    if not nested:
        return _counter_of_codes(codes)
    none_if_empty = message_class.__name__ in _NONE_IF_EMPTY and not codes

    def count(message: Any, counts: ErrorCounts) -> None:
        if none_if_empty and not any(getattr(message, each.name) for each in nested):
            counts[_NONE] += 1
        for code in codes:
            counts[getattr(message, code)] += 1
        for name, is_array, count_one in nested:
            found = getattr(message, name)
            if found is None:
                continue
            for one in found if is_array else (found,):
                count_one(one, counts)

    return count


def _counter_of_codes(codes: tuple[str, ...]) -> CountErrors | None:
    if not codes:
        return None
    (name,) = codes
    assert name.endswith(_SUFFIX)
    if name == _SUFFIX:  # nearly all of them: an attribute with a constant name is found faster

        def count_error_code(message: Any, counts: ErrorCounts) -> None:
            counts[message.error_code] += 1

        return count_error_code

    def count(message: Any, counts: ErrorCounts) -> None:
        counts[getattr(message, name)] += 1

    return count


def _is_counted(message_class: type[Message], field: Field, version: int) -> bool:
    name = message_class.__name__
    if (name, field.name) in _NOT_COUNTED:
        return False
    at_every_version = name in _COUNTED_AT_EVERY_VERSION and field.name.endswith(_SUFFIX)
    return at_every_version or version in VersionRange.parse(field.versions)


def _nested(message_class: type[Message], field: Field, version: int) -> _Nested | None:
    inside = vars(importlib.import_module(message_class.__module__)).get(field.type.removeprefix("[]"))
    if not isinstance(inside, type) or not issubclass(inside, Message):
        return None
    count = error_counter(inside, version)
    return None if count is None else _Nested(field.name, field.type.startswith("[]"), count)
