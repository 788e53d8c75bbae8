"""Bytes from strangers: random frames, mutations of real requests, huge promises, bytes one by one, compression bombs.

Whatever comes in, the broker serves the next client, its memory stays bounded, and no request runs into a bug."""

import random
import re
import socket
import struct
from collections import Counter

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.records import Codec, Record, build_batch
from tests.chaos.conftest import StartBroker
from tests.chaos.real_requests import real_requests
from tests.peers.observed import MIB, ObservedBroker
from tests.peers.raw_client import NAMES_TOPICS, RawClient, fetch_request, produce_request, request_frame
from tests.unit.protocol.mutation import mutate

TOPIC = "orders"
FRAMES = 10_000
CLOSED = "closed a connection"
RESPONDED = "responded"
MARKER = 0x6D61726B  # a correlation id that no mutation is likely to have
WAITS_SECONDS = 0.5  # a mutated fetch may ask to wait for weeks
BOUND_BYTES = 100 * MIB  # what the broker's memory may grow by


@pytest.fixture
def broker(start_broker: StartBroker) -> ObservedBroker:
    # Small, so that a bound that is not kept shows itself.
    broker = start_broker(overrides={"socket.request.max.bytes": str(8 * MIB), "socket.listen.backlog.size": "1000"})
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=2) == 0
        assert client.produce(TOPIC, [b"first"]).error_code == 0
    return broker


def _still_serves(broker: ObservedBroker) -> None:
    with broker.client() as client:
        response = client.produce(TOPIC, [b"still here"])
        assert response.error_code == 0
        read = client.fetch(TOPIC, response.base_offset)
        assert [record.value for record in read.records] == [b"still here"]


class Growth:
    """How much memory the broker took since now."""

    def __init__(self, broker: ObservedBroker) -> None:
        self._broker = broker
        broker.forget_peak_memory()
        self._before = broker.memory_bytes()

    def check(self, bound: int = BOUND_BYTES) -> None:
        grown = self._broker.peak_memory_bytes() - self._before
        print(f"memory grew by {grown / MIB:.1f} MiB at most")
        assert grown < bound


def _send_and_drain(connection: socket.socket, data: bytes) -> None:
    """Send, and read whatever comes until the broker hangs up."""
    try:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass


def test_random_frames_close_their_connection_with_one_line(broker: ObservedBroker, rng: random.Random) -> None:
    """Ten thousand: bare random bytes, and frames of the right length around them."""
    growth = Growth(broker)
    before = len(broker.log_lines(CLOSED))
    refused_bytes = 0
    for number in range(FRAMES):
        noise = rng.randbytes(rng.randrange(1, 200))
        if number % 2:
            # A length that is true and an API that nobody serves: surely no request.
            data = struct.pack(">ihh", len(noise) + 4, rng.choice((-1, 4, 6, 999)), 0) + noise
            refused_bytes += 1
        else:
            data = noise
        with socket.create_connection((broker.host, broker.port), timeout=30) as connection:
            _send_and_drain(connection, data)
    lines = broker.log_lines(CLOSED)[before:]
    assert refused_bytes <= len(lines) <= FRAMES, "one line for each connection that sent no request"
    peers = [match[1] for line in lines if (match := re.search(r"peer=(\S+)", line))]
    assert len(peers) == len(lines)
    growth.check()
    _still_serves(broker)


def test_mutations_of_real_requests_meet_no_bug(broker: ObservedBroker, rng: random.Random) -> None:
    """Ten thousand, many to a connection, over every served API and version. A request that runs into a bug is logged
    as an ERROR with its traceback, and fails this test at its end."""
    with broker.client() as client:
        topic_id = client.metadata(TOPIC).topics[0].topic_id
    frames = real_requests(TOPIC, topic_id)
    _all_get_a_response(broker, frames)
    growth = Growth(broker)
    outcomes: Counter[str] = Counter()
    client = broker.client(timeout=WAITS_SECONDS)
    for _ in range(FRAMES):
        outcome = _try_request(client, _mutation(rng.choice(frames)[4:], rng))
        outcomes[outcome] += 1
        if outcome != RESPONDED:
            client.close()
            client = broker.client(timeout=WAITS_SECONDS)
    client.close()
    print(f"{FRAMES} mutations of {len(frames)} requests: {dict(outcomes)}")
    assert outcomes[RESPONDED] > FRAMES // 10, "many mutations are requests still"
    growth.check()
    _still_serves(broker)


def _mutation(body: bytes, rng: random.Random) -> bytes:
    """Half of them are changed thoroughly, half in a byte or two: those are requests still, for strange things."""
    if rng.random() < 0.5:
        return mutate(body, rng)
    changed = bytearray(body)
    for _ in range(rng.randrange(1, 3)):
        changed[rng.randrange(8, len(changed))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))
    return bytes(changed)


def _try_request(client: RawClient, body: bytes) -> str:
    """Send a frame with that body and behind it a valid request: its response shows that the first was processed."""
    marker = request_frame(
        ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3, correlation_id=MARKER
    )
    try:
        client.send(struct.pack(">i", len(body)) + body + marker)
        # The response to the mutation, unless it has none, and the one to the marker.
        while client.receive()[:4] != MARKER.to_bytes(4):
            pass
    except TimeoutError:
        return "waits"
    except ConnectionError:
        return "closed"
    return RESPONDED


def test_mutated_streams_meet_no_bug(broker: ObservedBroker, rng: random.Random) -> None:
    """Requests one behind the other, with bytes changed, lost and added anywhere: also in the lengths between them."""
    with broker.client() as client:
        topic_id = client.metadata(TOPIC).topics[0].topic_id
    frames = real_requests(TOPIC, topic_id)
    growth = Growth(broker)
    for _ in range(FRAMES // 10):
        stream = b"".join(rng.choice(frames) for _ in range(10))
        with socket.create_connection((broker.host, broker.port), timeout=30) as connection:
            _send_and_drain(connection, mutate(stream, rng))
    growth.check()
    _still_serves(broker)


def _all_get_a_response(broker: ObservedBroker, frames: list[bytes]) -> None:
    """What the mutations begin with are requests, not noise."""
    with broker.client() as client:
        for frame in frames:
            client.send(frame)
            response = client.receive()
            assert response[:4] == frame[8:12], "the response is to another request"


@pytest.mark.parametrize("size", [-1, -(2**31), 8 * MIB + 1, 2**31 - 1])
def test_lengths_beyond_the_limit_are_refused_before_any_byte_is_kept(broker: ObservedBroker, size: int) -> None:
    growth = Growth(broker)
    for _ in range(50):
        with broker.client() as client:
            client.send(struct.pack(">i", size))
            assert client.is_closed_by_broker()
    growth.check(20 * MIB)
    _still_serves(broker)


def test_promised_lengths_take_no_memory(broker: ObservedBroker) -> None:
    """A thousand clients that each promise a frame of the largest size and send only its beginning."""
    growth = Growth(broker)
    clients = [broker.client() for _ in range(1000)]
    try:
        for client in clients:
            client.send(struct.pack(">i", 8 * MIB) + bytes(100))
        _still_serves(broker)
        growth.check()
    finally:
        for client in clients:
            client.close()


def test_one_byte_at_a_time(broker: ObservedBroker) -> None:
    request = produce_request(TOPIC, bytes(build_batch([Record(-1, b"k", b"slowly")])))
    frame = request_frame(request, NAMES_TOPICS)
    with broker.client() as slow:
        for position in range(len(frame)):
            slow.send(frame[position : position + 1])
            if position % 20 == 0:
                _still_serves(broker)
        assert slow.receive()[:4] == frame[8:12]
    with broker.client() as client:
        assert b"slowly" in client.read_values(TOPIC)


def test_client_that_stops_reading_is_not_read_from(broker: ObservedBroker) -> None:
    """It asks for far more than it takes: its responses must not pile up in the broker."""
    with broker.client() as client:
        for _ in range(4):
            assert client.produce(TOPIC, [bytes(900_000)]).error_code == 0
    growth = Growth(broker)
    greedy = [broker.client() for _ in range(10)]
    try:
        for client in greedy:
            _send_all_it_takes(client, request_frame(fetch_request(TOPIC, 0, max_bytes=64 * MIB), NAMES_TOPICS))
        _still_serves(broker)
        growth.check(100 * MIB)
        # A client that reads again gets everything in flight.
        greedy[0].socket.settimeout(30)
        for _ in range(5):
            assert len(greedy[0].receive()) > 250_000
    finally:
        for client in greedy:
            client.close()
    _still_serves(broker)


def test_fetches_that_wait_together_do_not_all_take_the_same_record(broker: ObservedBroker) -> None:
    """Hundreds of waiting fetches on a connection: when the large record they wait for comes, few of them hold it."""
    growth = Growth(broker)
    greedy = [broker.client() for _ in range(10)]
    try:
        with broker.client() as client:
            end = client.offset_at(TOPIC, partition=1)[1]
            waiting = fetch_request(TOPIC, end, partition=1, max_wait_ms=20_000, max_bytes=64 * MIB)
            for each in greedy:
                _send_all_it_takes(each, request_frame(waiting, NAMES_TOPICS))
            assert client.produce(TOPIC, [bytes(1_000_000)], partition=1).error_code == 0
            assert client.produce(TOPIC, [bytes(1_000_000)], partition=1).error_code == 0
        _still_serves(broker)
        growth.check(150 * MIB)
        greedy[0].socket.settimeout(30)
        for _ in range(20):
            assert len(greedy[0].receive()) > 900_000
    finally:
        for client in greedy:
            client.close()


def _send_all_it_takes(client: RawClient, frame: bytes) -> None:
    """Two thousand requests, or as many as the broker is ready to read."""
    client.socket.settimeout(0.2)
    try:
        for _ in range(2000):
            client.send(frame)
    except TimeoutError:
        pass


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name)
def test_compression_bomb_is_checked_in_bounded_memory(broker: ObservedBroker, codec: Codec) -> None:
    """A batch under `max.message.bytes` that holds hundreds of megabytes of zeros, from two clients at once."""
    size = {Codec.GZIP: 600, Codec.SNAPPY: 12, Codec.LZ4: 200, Codec.ZSTD: 600}[codec] * MIB
    batch = bytes(build_batch([Record(1_700_000_000_000, None, bytes(size))], codec=codec))
    print(f"{len(batch)} bytes that inflate to {size}")
    assert len(batch) < 1_048_588
    growth = Growth(broker)
    frame = request_frame(produce_request(TOPIC, batch, partition=1), NAMES_TOPICS)
    with broker.client(timeout=100) as one, broker.client(timeout=100) as two:
        one.send(frame)
        two.send(frame)
        _still_serves(broker)  # while they are being inflated
        for client in (one, two):
            response = client.receive()
            assert response[:4] == frame[8:12]
    growth.check(60 * MIB)
    _still_serves(broker)


# A flipped bit may make a batch transactional, and the request is not: that is looked at before the CRC, as in Kafka.
REFUSALS_OF_DAMAGE = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def test_malformed_batches_are_refused_and_the_connection_goes_on(broker: ObservedBroker, rng: random.Random) -> None:
    """Damage inside the records is an error of that partition, not of the connection."""
    batch = bytes(build_batch([Record(1_700_000_000_000, b"k", b"v" * 50)]))
    with broker.client() as client:
        end = client.offset_at(TOPIC)[1]
        for _ in range(500):
            damaged = bytearray(batch)
            damaged[rng.randrange(17, len(batch))] ^= 1 << rng.randrange(8)
            response = client.produce_batch(TOPIC, bytes(damaged))
            assert response.error_code in REFUSALS_OF_DAMAGE, response
        assert client.offset_at(TOPIC) == (0, end), "nothing of it is in the log"
