"""One connection's side of the protocol without the connection: bytes in, answers out.

It gives requests their correlation ids and versions, cuts the received bytes into frames, and pairs each with the
request it answers. Kafka answers the requests of a connection in their order, so an answer that is not the oldest open
request's is MalformedBytes, and so is a frame larger than `max_frame_bytes`: the connection cannot be used further.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes
from kaspar.protocol.api import KNOWN_VERSIONS, ApiKey, api_name, response_class
from kaspar.protocol.api_keys import FIRST_OWN_KEY
from kaspar.protocol.codec import read, write
from kaspar.protocol.headers import SIZE_BYTES, frame, read_response_header, write_request_header
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message, VersionRange
from kaspar.records.codec import Octets

MAX_FRAME_BYTES = 256 * 1024 * 1024
MAX_ANSWER_ELEMENTS = 1 << 25  # the metadata of a very large cluster
_LAST_CORRELATION_ID = 0x7FFF_FFFF


class UnsupportedByPeer(KasparError):
    """The peer serves no version of an API that this client knows, or not the one that is needed."""


class OpenRequest(NamedTuple):
    api_key: ApiKey
    version: int
    correlation_id: int


class Answer(NamedTuple):
    request: OpenRequest
    message: Message


class ClientCore:
    def __init__(
        self, *, client_id: str = "kaspar", max_frame_bytes: int = MAX_FRAME_BYTES, records_in_place: bool = False
    ) -> None:
        """With records_in_place the record batches of an answer are views of the received frame instead of copies."""
        self.client_id = client_id
        self.max_frame_bytes = max_frame_bytes
        self.records_in_place = records_in_place
        self.served: dict[int, VersionRange] = {}
        """What the peer serves, once it has told."""
        self.open_requests: deque[OpenRequest] = deque()
        self._received = bytearray(SIZE_BYTES)
        self._received_bytes = 0
        self._is_size = True  # what is being received is the length of the next frame, and not the frame
        self._correlation_id = 0

    # --- versions -----------------------------------------------------------------------------------------------------

    def api_versions_request(self) -> bytes:
        """The first request on a connection."""
        return self.send(ApiVersionsRequest(client_software_name="kaspar", client_software_version="1"))

    def learn_versions(self, response: ApiVersionsResponse) -> bool:
        """Take what the peer serves. False: it refused the request's version and named the ones it knows; ask again."""
        self.served = {api.api_key: VersionRange(api.min_version, api.max_version) for api in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and ApiKey.API_VERSIONS in self.served:
            return False
        if response.error_code != ErrorCode.NONE:
            raise UnsupportedByPeer(f"the peer does not tell its versions: {ErrorCode(response.error_code).name}")
        return True

    def version_of(self, api_key: ApiKey) -> int:
        """The newest version that both sides know; the newest known here while the peer has not told."""
        first, last, _ = KNOWN_VERSIONS[api_key]
        if not self.served:
            return last
        served = self.served.get(api_key)
        if served is None or min(last, served.last) < max(first, served.first):
            told = "not at all" if served is None else f"in versions {served.first} to {served.last}"
            raise UnsupportedByPeer(
                f"{api_name(api_key)} {first} to {last} is known here, and the peer serves it {told}"
            )
        return min(last, served.last)

    def check_serves(self, api_key: ApiKey, version: int) -> None:
        """For a request in a version of the caller's choice: a peer that does not know it hangs up without a word.
        Kaspar's own APIs are never announced, so there is nothing to check them against.
        """
        served = self.served.get(api_key)
        if self.served and api_key < FIRST_OWN_KEY and (served is None or not served.first <= version <= served.last):
            raise UnsupportedByPeer(f"{api_name(api_key)} {version} is asked for, and the peer does not serve it")

    # --- out ----------------------------------------------------------------------------------------------------------

    def send(self, message: Message, version: int | None = None, *, answered: bool = True) -> bytes:
        """The frame of a request. A Produce request with acks 0 is not answered: the caller has to say so."""
        api_key = ApiKey(message.SCHEMA.api_key)
        if version is None:
            version = self.version_of(api_key)
        return self.send_body(api_key, version, write(message, version), answered=answered)

    def send_pieces(
        self, api_key: ApiKey, version: int, pieces: Sequence[Octets], *, answered: bool = True
    ) -> list[Octets]:
        """The frame of a request whose body is given in pieces, which are not copied: send them one after the other."""
        head = self.send_body(api_key, version, b"", answered=answered)
        size = len(head) - SIZE_BYTES + sum(map(len, pieces))
        return [struct.pack(">I", size) + head[SIZE_BYTES:], *pieces]

    def send_body(self, api_key: ApiKey, version: int, body: bytes, *, answered: bool = True) -> bytes:
        """The frame of a request whose body is already encoded."""
        correlation_id = self._correlation_id
        self._correlation_id = 0 if correlation_id == _LAST_CORRELATION_ID else correlation_id + 1
        if answered:
            self.open_requests.append(OpenRequest(api_key, version, correlation_id))
        return frame(write_request_header(api_key, version, correlation_id, self.client_id) + body)

    # --- in -----------------------------------------------------------------------------------------------------------

    def room(self) -> memoryview:
        """Where the next bytes belong: never more than the rest of a frame. `received` is told how many have come."""
        return memoryview(self._received)[self._received_bytes :]

    def received(self, count: int) -> Answer | None:
        """The answer that is whole with the bytes that were put into `room`."""
        self._received_bytes += count
        if self._received_bytes < len(self._received):
            return None
        whole = self._received
        self._received_bytes = 0
        self._is_size = not self._is_size
        if self._is_size:
            self._received = bytearray(SIZE_BYTES)
            return self._answer(whole)
        (size,) = struct.unpack(">i", whole)
        if not 0 < size <= self.max_frame_bytes:
            raise MalformedBytes(f"a frame of {size} bytes, and {self.max_frame_bytes} is the most")
        self._received = bytearray(size)
        return None

    def receive(self, data: bytes) -> Iterator[Answer]:
        """The answers that are whole with these bytes."""
        left = memoryview(data)
        while left:
            room = self.room()
            count = min(len(room), len(left))
            room[:count] = left[:count]
            left = left[count:]
            if (answer := self.received(count)) is not None:
                yield answer

    def _answer(self, answer_frame: bytearray) -> Answer:
        if not self.open_requests:
            raise MalformedBytes("an answer, and nothing was asked")
        request = self.open_requests.popleft()
        version = request.version
        correlation_id, position = read_response_header(request.api_key, version, answer_frame)
        if correlation_id != request.correlation_id:
            raise MalformedBytes(f"an answer to request {correlation_id}, and {request.correlation_id} is the oldest")
        if request.api_key is ApiKey.API_VERSIONS and _refuses_version(answer_frame, position):
            version = 0
        message, _ = read(
            response_class(request.api_key),
            version,
            answer_frame,
            position,
            max_elements=MAX_ANSWER_ELEMENTS,
            records_in_place=self.records_in_place,
        )
        return Answer(request, message)


def _refuses_version(answer_frame: bytearray, position: int) -> bool:
    """Whether an ApiVersions response refuses the version it was asked in: then it is of version 0."""
    code = answer_frame[position : position + 2]
    return int.from_bytes(code, "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
