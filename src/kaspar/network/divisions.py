"""Which requests can be handled in pieces, and how. Pure functions, without I/O.

A request that names thousands of topics, partitions or groups is divided into several requests of the same API. Each is
handled in its own turn of the event loop, and their responses are joined into the one that the client gets. An API is
divided only if every element of its array is handled independently and has its own result. Properties of a request as a
whole then hold for each piece: offsets that are committed together are in one batch per piece, and duplicate elements
are noticed within a piece.

The other APIs are handled at once, so the number of their elements is bounded (`UNDIVIDED_MAX_ELEMENTS`).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

from kaspar.base.errors import ErrorCode, Refused
from kaspar.network.api import PartlyEncoded, Response
from kaspar.protocol import codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message, VersionRange

Path: TypeAlias = tuple[str, ...]
"""The names of nested arrays, each in the elements of the one before."""

MAX_ELEMENTS: Final = 1 << 17
UNDIVIDED_MAX_ELEMENTS: Final = 20_000
UNDIVIDED_AT_ONCE: Final = 500
CONTROLLED_MAX_ELEMENTS: Final = 20_000
"""The limit for requests that the controller decides. Kafka's controller writes at most 10,000 records per request."""

MAX_RESPONSE_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Division:
    request: Path
    response: Path
    at_once: int
    """The number of elements of the innermost array that are handled in about a millisecond."""

    max_elements: int = MAX_ELEMENTS
    """The limit for all arrays of the request together, which is more than any client sends."""


DIVISIONS: Final[dict[int, tuple[Division, ...]]] = {
    ApiKey.LIST_OFFSETS: (Division(("topics", "partitions"), ("topics", "partitions"), 250),),
    ApiKey.METADATA: (Division(("topics",), ("topics",), 250),),
    ApiKey.OFFSET_COMMIT: (Division(("topics", "partitions"), ("topics", "partitions"), 500),),
    ApiKey.OFFSET_FETCH: (
        Division(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"), 250),
        Division(("topics", "partition_indexes"), ("topics", "partitions"), 250),
    ),
    ApiKey.FIND_COORDINATOR: (Division(("coordinator_keys",), ("coordinators",), 250),),
    ApiKey.DESCRIBE_GROUPS: (Division(("groups",), ("groups",), 50),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Division(("group_ids",), ("groups",), 50),),
    ApiKey.DELETE_GROUPS: (Division(("groups_names",), ("results",), 50),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Division(("transactional_ids",), ("transaction_states",), 100),),
    ApiKey.DESCRIBE_PRODUCERS: (Division(("topics", "partition_indexes"), ("topics", "partitions"), 50),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (Division(("topics", "partitions"), ("topics", "partitions"), 250),),
    ApiKey.DELETE_RECORDS: (Division(("topics", "partitions"), ("topics", "partitions"), 100),),
    ApiKey.DESCRIBE_CONFIGS: (Division(("resources",), ("results",), 1, CONTROLLED_MAX_ELEMENTS),),
    ApiKey.ALTER_CONFIGS: (Division(("resources",), ("responses",), 100, CONTROLLED_MAX_ELEMENTS),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Division(("resources",), ("responses",), 100, CONTROLLED_MAX_ELEMENTS),),
    ApiKey.CREATE_TOPICS: (Division(("topics",), ("topics",), 20, CONTROLLED_MAX_ELEMENTS),),
    ApiKey.CREATE_PARTITIONS: (Division(("topics",), ("results",), 100, CONTROLLED_MAX_ELEMENTS),),
    ApiKey.DELETE_TOPICS: (
        Division(("topics",), ("responses",), 100, CONTROLLED_MAX_ELEMENTS),
        Division(("topic_names",), ("responses",), 100, CONTROLLED_MAX_ELEMENTS),
    ),
}


def elements_at_once(api_key: int) -> int:
    """The number of elements up to which a request is read and handled directly."""
    divisions = DIVISIONS.get(api_key)
    return divisions[0].at_once if divisions else UNDIVIDED_AT_ONCE


def max_elements(api_key: int) -> int:
    divisions = DIVISIONS.get(api_key)
    return divisions[0].max_elements if divisions else UNDIVIDED_MAX_ELEMENTS


def division_of(api_key: int, request: Message) -> Division | None:
    """How this request is divided; None if it is not divided."""
    for division in DIVISIONS.get(api_key, ()):
        if getattr(request, division.request[0]):
            return division
    return None


class Piece(NamedTuple):
    request: Message
    goes_on: bool
    """Whether the next piece continues the last element of this one."""


def pieces(request: Message, division: Division) -> Iterator[Piece]:
    """The request as several requests, each with at most `at_once` innermost elements, in their order. An element that
    stands for everything, such as a group without topics, is a piece of its own.
    """
    path = division.request
    taken: list[tuple[Any, ...]] = []
    alone = False
    for leaf in _leaves(request, path):
        stands_for_all = _stands_for_all(leaf, path)
        if taken and (alone or stands_for_all or len(taken) >= division.at_once):
            yield Piece(_with_leaves(request, path, taken), leaf[0] is taken[-1][0])
            taken = []
        taken.append(leaf)
        alone = stands_for_all
    if taken:
        yield Piece(_with_leaves(request, path, taken), goes_on=False)


def asks_for_all_of_several(offset_fetch: Any) -> bool:
    """Whether all offsets of several groups are requested: each group may have thousands."""
    groups = offset_fetch.groups
    return len(groups) > 1 and any(group.topics is None for group in groups)


def _stands_for_all(leaf: tuple[Any, ...], path: Path) -> bool:
    return len(leaf) < len(path) and getattr(leaf[-1], path[len(leaf)]) is None


def _leaves(message: Message, path: Path) -> Iterator[tuple[Any, ...]]:
    """The path to each innermost element. An element whose array is empty, or null, counts as innermost."""
    name, *below = path
    for element in getattr(message, name) or ():
        inner = _leaves(element, tuple(below)) if below else iter(())
        first = next(inner, None)
        if first is None:
            yield (element,)
            continue
        yield (element, *first)
        for leaf in inner:
            yield (element, *leaf)


def _with_leaves(message: Message, path: Path, leaves: Sequence[tuple[Any, ...]]) -> Message:
    name, *below = path
    if not below:
        return _with_array(message, name, (leaf[0] for leaf in leaves))
    elements = []
    for _, group in itertools.groupby(leaves, key=lambda leaf: id(leaf[0])):
        of_element = list(group)
        element = of_element[0][0]
        if len(of_element[0]) > 1:
            element = _with_leaves(element, tuple(below), [leaf[1:] for leaf in of_element])
        elements.append(element)
    return _with_array(message, name, elements)


def _with_array(message: Message, name: str, elements: Iterable[Any]) -> Message:
    changed: Message = replace(cast(Any, message), **{name: tuple(elements)})
    return changed


class JoinedResponse:
    """Joins the responses to the pieces into the response to the whole request.

    Elements that were divided between two pieces, such as the partitions of one topic, are joined again. An error of a
    piece as a whole becomes the error of the whole request, or of the whole group. If the failed elements were left out
    instead, the client would take them for offsets that were never committed.
    """

    def __init__(self, division: Division, version: int) -> None:
        self._path = division.response
        self._version = version
        self._first: Message | None = None
        self._failed: Response | None = None
        self._open: list[Message] = []
        """The parts of one element of the outermost array that the next piece may continue."""
        self._encoded: list[bytes] = []
        self._bytes = 0

    def add(self, response: Response, *, goes_on: bool) -> None:
        """Add and encode the response to a piece, for a large one in a thread. `goes_on`: the next piece may continue
        its last element. Raises Refused if the whole response would be too large for memory.
        """
        message, encoded, _ = response if isinstance(response, PartlyEncoded) else (response, {}, {})
        self._first = self._first or message
        if self._failed is None and _has_error(message, self._version):
            self._failed = response
        name = self._path[0]
        if name in encoded and len(self._path) == 1:
            self._append(encoded[name])
        else:
            if encoded:  # its last element may be incomplete
                data = codec.write(message, self._version, encoded)
                message, _ = codec.read(type(message), self._version, data, max_elements=len(data))
            for element in getattr(message, name):
                self._add_element(element)
        if not goes_on:
            self._close()
        if self._bytes > MAX_RESPONSE_BYTES:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"the response would exceed {MAX_RESPONSE_BYTES} bytes: request fewer elements",
            )

    def _add_element(self, element: Any) -> None:
        if len(self._path) == 1:
            self._append([codec.write(element, self._version)])
            return
        if self._open and _identity(self._open[0], self._path[1]) != _identity(element, self._path[1]):
            self._close()
        self._open.append(element)

    def _close(self) -> None:
        parts, self._open = self._open, []
        if parts:
            whole = next((part for part in parts if _has_error(part, self._version)), None)
            self._append([codec.write(whole or _joined(parts, self._path[1:]), self._version)])

    def _append(self, elements: Sequence[bytes]) -> None:
        self._encoded += elements
        self._bytes += sum(map(len, elements))

    def whole(self) -> Response:
        assert self._first is not None, "a request has at least one piece"
        self._close()
        return self._failed or PartlyEncoded(self._first, {self._path[0]: self._encoded}, {})


def _has_error(message: Any, version: int) -> bool:
    """Whether the message itself has an error, in a field that the version has."""
    return any(
        field.name == "error_code" and message.error_code and version in VersionRange.parse(field.versions)
        for field in message.SCHEMA.fields
    )


def _identity(element: Any, inner: str) -> Any:
    """The element without its array and its error, which is the same for all parts of one element."""
    without_error = {"error_code": 0} if hasattr(element, "error_code") else {}
    return replace(element, **{inner: ()}, **without_error)


def _joined(messages: Sequence[Message], path: Path) -> Message:
    """Join the arrays of these messages. Elements that differ only in the array in them are joined as well."""
    name, *below = path
    elements: tuple[Any, ...] = tuple(element for message in messages for element in getattr(message, name))
    if below:
        inner = below[0]
        alike = itertools.groupby(elements, key=lambda element: _with_array(element, inner, ()))
        elements = tuple(_joined(list(group), tuple(below)) for _, group in alike)
    return _with_array(messages[0], name, elements)
