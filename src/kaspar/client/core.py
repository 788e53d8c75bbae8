"""The client side of one connection, without I/O: requests become frames, and received bytes become responses.

Both shells use it: blocking.py and asynchronous.py. It assigns correlation ids and versions, splits the received bytes
into frames, and matches each response with its request. A broker responds to the requests of a connection in order, so
a response to anything but the oldest open request is MalformedBytes, as is a frame larger than `max_frame_bytes`. After
that the connection cannot be used any more.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes
from kaspar.base.primitives import Octets
from kaspar.protocol.api import KNOWN_VERSIONS, ApiKey, api_name, response_class
from kaspar.protocol.api_keys import FIRST_OWN_KEY
from kaspar.protocol.codec import read, write
from kaspar.protocol.headers import SIZE_BYTES, frame, read_response_header, write_request_header
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message, VersionRange

CONNECT_TIMEOUT_S: Final = 10.0  # socket.connection.setup.timeout.ms of Kafka's clients
REQUEST_TIMEOUT_S: Final = 30.0  # request.timeout.ms
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
_MAX_RESPONSE_ELEMENTS: Final = 1 << 25  # the metadata of a very large cluster
_LAST_CORRELATION_ID: Final = 0x7FFF_FFFF

API_VERSIONS_REQUEST: Final = ApiVersionsRequest(client_software_name="kaspar", client_software_version="1")
"""The first request on a connection, unless the caller chooses all versions itself."""


class UnsupportedByPeer(KasparError):
    """The peer does not serve any version of an API that this client knows, or not the required version."""


class Unencodable(KasparError, ValueError):
    """A value of the request does not fit into its field: a string that is too long, or a number."""


class OpenRequest(NamedTuple):
    api_key: ApiKey
    version: int
    correlation_id: int


class EncodedRequest(NamedTuple):
    api_key: ApiKey
    version: int
    body: bytes


class Response(NamedTuple):
    request: OpenRequest
    message: Message


class ClientCore:
    def __init__(
        self, *, client_id: str = "kaspar", max_frame_bytes: int = MAX_FRAME_BYTES, records_in_place: bool = False
    ) -> None:
        """With `records_in_place` the record batches of a response are views of the received frame, not copies."""
        self.client_id = client_id
        self.max_frame_bytes = max_frame_bytes
        self.records_in_place = records_in_place
        self.served: dict[int, VersionRange] = {}
        """The versions that the peer serves; empty until its ApiVersions response has arrived."""
        self.open_requests: deque[OpenRequest] = deque()
        self._is_version_refused = False
        self._buffer = bytearray(SIZE_BYTES)
        self._received_bytes = 0
        self._is_size = True  # the buffer receives the size of the next frame, not the frame
        self._correlation_id = 0

    # --- versions -----------------------------------------------------------------------------------------------------

    def learn_versions(self, response: Message) -> bool:
        """Apply a response to API_VERSIONS_REQUEST. False if the peer refused the version of the request: it has
        returned those that it serves, so the request has to be sent once more.
        """
        assert isinstance(response, ApiVersionsResponse)
        self.served = {api.api_key: VersionRange(api.min_version, api.max_version) for api in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and ApiKey.API_VERSIONS in self.served:
            if self._is_version_refused:
                raise UnsupportedByPeer("the peer refuses the version of ApiVersions that it says it serves")
            self._is_version_refused = True
            return False
        if response.error_code != ErrorCode.NONE:
            raise UnsupportedByPeer(f"the peer refuses ApiVersions: {ErrorCode(response.error_code).name}")
        return True

    def version_of(self, api_key: ApiKey) -> int:
        """The newest version that both sides know. Before the peer's ApiVersions response, the newest known here."""
        first, last, _ = KNOWN_VERSIONS[api_key]
        if not self.served:
            return last
        served = self.served.get(api_key)
        if served is None or min(last, served.last) < max(first, served.first):
            theirs = "does not serve it" if served is None else f"serves versions {served.first} to {served.last}"
            raise UnsupportedByPeer(
                f"no common version of {api_name(api_key)}: this client knows {first} to {last}, the peer {theirs}"
            )
        return min(last, served.last)

    def check_serves(self, api_key: ApiKey, version: int) -> None:
        """Raise UnsupportedByPeer if the peer does not serve the version that the caller chose: it would close the
        connection without a response. Kaspar's own APIs are never announced, so they are not checked."""
        served = self.served.get(api_key)
        if self.served and api_key < FIRST_OWN_KEY and (served is None or not served.first <= version <= served.last):
            raise UnsupportedByPeer(f"the peer does not serve version {version} of {api_name(api_key)}")

    # --- requests -----------------------------------------------------------------------------------------------------

    def send(self, message: Message, version: int | None = None, *, has_response: bool = True) -> bytes:
        """The frame of a request. Produce with acks=0 has no response: its caller passes `has_response=False`."""
        return self.send_encoded(self.encode(message, version), has_response=has_response)

    def encode(self, message: Message, version: int | None = None) -> EncodedRequest:
        """Encode a request that may be sent later, by default in the newest version that both sides know."""
        api_key = ApiKey(message.SCHEMA.api_key)
        if version is None:
            version = self.version_of(api_key)
        try:
            return EncodedRequest(api_key, version, write(message, version))
        except (ValueError, struct.error) as problem:
            raise Unencodable(f"{api_name(api_key)} cannot be sent: {problem}") from problem

    def send_pieces(
        self, api_key: ApiKey, version: int, pieces: Sequence[Octets], *, has_response: bool = True
    ) -> list[Octets]:
        """The frame of a request whose body is already encoded, in pieces, which are not copied."""
        head = self.send_encoded(EncodedRequest(api_key, version, b""), has_response=has_response)
        size = len(head) - SIZE_BYTES + sum(map(len, pieces))
        return [struct.pack(">I", size) + head[SIZE_BYTES:], *pieces]

    def send_encoded(self, request: EncodedRequest, *, has_response: bool = True) -> bytes:
        """The frame of the request. Frames must be sent in the order of these calls."""
        api_key, version, body = request
        correlation_id = self._correlation_id
        self._correlation_id = 0 if correlation_id == _LAST_CORRELATION_ID else correlation_id + 1
        if has_response:
            self.open_requests.append(OpenRequest(api_key, version, correlation_id))
        return frame(write_request_header(api_key, version, correlation_id, self.client_id) + body)

    # --- responses ----------------------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        """The buffer for the next received bytes. It never extends beyond the frame that is being received."""
        return memoryview(self._buffer)[self._received_bytes :]

    def buffer_updated(self, count: int) -> Response | None:
        """Note that `count` bytes were put into the buffer. Returns the response if they complete one."""
        self._received_bytes += count
        if self._received_bytes < len(self._buffer):
            return None
        complete = self._buffer
        self._received_bytes = 0
        self._is_size = not self._is_size
        if self._is_size:
            self._buffer = bytearray(SIZE_BYTES)
            return self._response(complete)
        (size,) = struct.unpack(">i", complete)
        if not 0 < size <= self.max_frame_bytes:
            raise MalformedBytes(f"a response frame of {size} bytes; the limit is {self.max_frame_bytes}")
        self._buffer = bytearray(size)
        return None

    def receive(self, data: bytes) -> Iterator[Response]:
        """The responses that these bytes complete."""
        left = memoryview(data)
        while left:
            buffer = self.get_buffer()
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            left = left[count:]
            if (response := self.buffer_updated(count)) is not None:
                yield response

    def _response(self, response_frame: bytearray) -> Response:
        if not self.open_requests:
            raise MalformedBytes("a response without a request")
        request = self.open_requests.popleft()
        version = request.version
        correlation_id, position = read_response_header(request.api_key, version, response_frame)
        if correlation_id != request.correlation_id:
            raise MalformedBytes(f"a response with correlation id {correlation_id} instead of {request.correlation_id}")
        if request.api_key is ApiKey.API_VERSIONS and _refuses_version(response_frame, position):
            version = 0
        message, _ = read(
            response_class(request.api_key),
            version,
            response_frame,
            position,
            max_elements=_MAX_RESPONSE_ELEMENTS,
            records_in_place=self.records_in_place,
        )
        return Response(request, message)


def _refuses_version(response_frame: bytearray, position: int) -> bool:
    """Whether an ApiVersions response refuses the version of its request: such a response has version 0 (KIP-511)."""
    code = response_frame[position : position + 2]
    return int.from_bytes(code, "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
