"""Torn and bit-flipped tails: after a kill the log is cut behind the last sound batch, and goes on from there."""

import random
from pathlib import Path

import pytest

from kaspar.records import crc_matches, iter_headers
from tests.chaos.conftest import StartBroker
from tests.peers.observed import ObservedBroker
from tests.peers.raw_client import RawClient

TOPIC = "orders"
BATCHES = 40
RECORDS = 5


def _write(client: RawClient, first: int, count: int) -> list[bytes]:
    values = [f"{number}".encode() for number in range(first, first + count * RECORDS)]
    for start in range(0, len(values), RECORDS):
        response = client.produce(TOPIC, values[start : start + RECORDS])
        assert (response.error_code, response.base_offset) == (0, first + start)
    return values


@pytest.fixture
def killed(start_broker: StartBroker) -> ObservedBroker:
    """A broker that was killed with one segment on which nothing was synced."""
    broker = start_broker()
    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        _write(client, 0, BATCHES)
    broker.kill()
    return broker


@pytest.mark.parametrize("damage", ["torn", "bit", "zeros", "garbage", "twice"])
def test_log_goes_on_behind_the_last_sound_batch(killed: ObservedBroker, rng: random.Random, damage: str) -> None:
    segment = killed.segment_files(TOPIC)[0]
    whole = segment.read_bytes()
    batch_bytes = len(whole) // BATCHES  # all of one size, or nearly: records differ by a digit or two
    damaged = bytearray(whole)
    at_least = 0
    match damage:
        case "torn":
            position = rng.randrange(len(whole) // 2, len(whole))
            del damaged[position:]
        case "bit":
            position = rng.choice(_covered_by_a_crc(whole))
            damaged[position] ^= 1 << rng.randrange(8)
        case "zeros":
            position = len(whole)
            damaged += bytes(rng.randrange(1, 5000))
        case "garbage":
            position = len(whole)
            damaged += rng.randbytes(rng.randrange(1, 5000))
        case _:
            position = len(whole)
            damaged += whole[-batch_bytes:]  # sound in itself, but its offsets go back
    at_least = max(0, position // batch_bytes - 3) * RECORDS
    segment.write_bytes(damaged)
    _forget_indexes_sometimes(segment, rng)

    killed.start()
    with killed.client() as client:
        kept = client.read_values(TOPIC)
        assert kept == [f"{number}".encode() for number in range(len(kept))]
        assert len(kept) % RECORDS == 0, "a batch is there whole or not at all"
        assert at_least <= len(kept) <= BATCHES * RECORDS
        if position == len(whole):
            assert len(kept) == BATCHES * RECORDS, "what was sound is gone"
        _write(client, len(kept), 3)
        assert client.offset_at(TOPIC) == (0, len(kept) + 3 * RECORDS)
    if damage != "twice":
        killed.wait_for_log("cut invalid bytes off the end of a segment")


def _covered_by_a_crc(segment: bytes) -> list[int]:
    """The bytes of the segment's second half in which a flip can be detected. The broker gives a batch its base offset
    and its leader epoch after the producer computed the CRC, so in Kafka's format nothing vouches for those two."""
    unseen = (*range(8), *range(12, 16))
    batches = [position for position, _ in iter_headers(segment, 0, len(segment))]
    blind = {position + at for position in batches for at in unseen}
    return [position for position in range(len(segment) // 2, len(segment)) if position not in blind]


def _forget_indexes_sometimes(segment: Path, rng: random.Random) -> None:
    for suffix in (".index", ".timeindex"):
        index = segment.with_suffix(suffix)
        match rng.choice(("leave", "remove", "damage")):
            case "remove":
                index.unlink(missing_ok=True)
            case "damage":
                index.write_bytes(rng.randbytes(rng.randrange(0, 100)))


def test_damaged_index_and_snapshot_files_cost_no_record(killed: ObservedBroker, rng: random.Random) -> None:
    """All files besides the segments can be rebuilt from them."""
    folder = killed.segment_files(TOPIC)[0].parent
    for path in folder.iterdir():
        if path.suffix in (".index", ".timeindex", ".snapshot") or path.name == "leader-epoch-checkpoint":
            path.write_bytes(rng.randbytes(37))
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (killed.data_dir / name).write_bytes(rng.randbytes(37))
    killed.start()
    with killed.client() as client:
        assert client.read_values(TOPIC) == [f"{number}".encode() for number in range(BATCHES * RECORDS)]
        _write(client, BATCHES * RECORDS, 3)


def test_bit_flips_after_a_clean_stop_are_seen_by_readers(start_broker: StartBroker, rng: random.Random) -> None:
    """A start after a clean stop reads no data. A bit that flipped meanwhile is sent as it is, and the CRC that came
    from the producer reveals it to the reader; the broker stays up, and truncates nothing."""
    broker = start_broker()
    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        assert client.create_topic("other") == 0
        _write(client, 0, BATCHES)
    broker.stop()
    segment = broker.segment_files(TOPIC)[0]
    damaged = bytearray(segment.read_bytes())
    damaged[-rng.randrange(1, 20)] ^= 1 << rng.randrange(8)  # in a record of the last batch
    segment.write_bytes(damaged)
    broker.start()
    with broker.client() as client:
        _write(client, BATCHES * RECORDS, 1)
        found = client.fetch_bytes(TOPIC, 0).records
        assert found is not None
        sound = [crc_matches(found, position, header) for position, header in iter_headers(found, 0, len(found))]
        assert sound == [True] * (BATCHES - 1) + [False, True]
        assert client.produce("other", [b"x"]).error_code == 0
    assert segment.read_bytes().startswith(damaged)
