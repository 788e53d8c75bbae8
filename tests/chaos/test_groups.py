"""Groups whose members and coordinator are killed and paused: one owner for each partition, and no commit is lost."""

import random
import threading
import time
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from tests.chaos.actors.feeder import FeederSettings
from tests.chaos.actors.member import MemberSettings
from tests.chaos.actors.membership import CONSUMER_PROTOCOL, COOPERATIVE, SESSION_TIMEOUT_MS
from tests.chaos.conftest import StartBroker
from tests.chaos.history import (
    OFFSETS_TOPIC,
    CommitAcknowledged,
    CommitAsked,
    History,
    Journal,
    OffsetFetched,
    Owns,
    check,
    read_journals,
    read_logs,
)
from tests.chaos.lives import Lives, Role
from tests.chaos.pipeline import COORDINATION
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import NOWHERE, commit, committed
from tests.peers.raw_transactions import GROUP, find_coordinator

TOPIC = "orders"
READERS = "readers"
PARTITIONS = 6
MEMBERS = 4
LONGER_THAN_A_SESSION = SESSION_TIMEOUT_MS / 1000 + 0.5


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", ["range", COOPERATIVE, CONSUMER_PROTOCOL])
def test_partitions_have_one_owner_over_kills_and_pauses(
    start_broker: StartBroker, rng: random.Random, rounds: int, strategy: str, tmp_path: Path
) -> None:
    """Members stand still for longer than their session, die, come back; the coordinator is killed under them."""
    broker = start_broker(overrides=COORDINATION)
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS) == 0
    lives = Lives(tmp_path / "actors")
    _begin_everywhere_at_0(broker, lives)
    try:
        lives.add(Role("feeder", "tests.chaos.actors.feeder", lambda actor: _feeder(actor, broker, lives, rng)))
        members = [f"member-{number}" for number in range(MEMBERS)]
        for name in members:
            lives.add(
                Role(
                    name,
                    "tests.chaos.actors.member",
                    lambda actor: _member(actor, broker, lives, rng, strategy),
                )
            )
        for _ in range(max(1, rounds // 2)):  # these are long
            _wait_until_all_is_owned(lives)
            threading.Event().wait(rng.uniform(0.0, 0.5))
            _disturb(lives, members, broker, rng)
        _wait_until_all_is_owned(lives)
        lives.stop_all()
    finally:
        lives.kill_all()
    with Client(broker.bootstrap) as client:
        history = History.of(read_journals(lives.folder), read_logs(client, [TOPIC, OFFSETS_TOPIC]))
    assert check(history) == []
    owned = [event for event in history.events if isinstance(event, Owns) and event.partitions]
    assert len(history.commits) > rounds
    print(f"{len(owned)} assignments, {len(history.commits)} commits")


def _begin_everywhere_at_0(broker: ObservedBroker, lives: Lives) -> None:
    """A group without offsets has librdkafka look for the earliest one, and a response to that which comes late, when
    the partition was given away and came back, may set it back to where it has been."""
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    asked = [
        CommitAsked(actor="beginning", group=READERS, topic=TOPIC, partition=partition, offset=0)
        for partition in offsets
    ]
    journal = Journal(lives.folder, "beginning")
    journal.note(*asked)
    with broker.client() as client:
        find_coordinator(client, READERS, GROUP)
        assert commit(client, READERS, TOPIC, offsets) == ErrorCode.NONE
    journal.close()


def _disturb(lives: Lives, members: list[str], broker: ObservedBroker, rng: random.Random) -> None:
    victim = rng.choice(members)
    match rng.choice(["kill", "pause", "broker"]):
        case "kill":
            lives.kill(victim)
            lives.restart(victim)
        case "pause":
            lives.pause(victim)
            threading.Event().wait(LONGER_THAN_A_SESSION)
            lives.resume(victim)
        case _:
            broker.kill()
            broker.start()


def _wait_until_all_is_owned(lives: Lives) -> None:
    """By the live members, according to the last report of each."""

    def all_is_owned() -> bool:
        held: dict[str, tuple[tuple[str, int], ...]] = {}
        for event in read_journals(lives.folder, "member-*"):
            if isinstance(event, Owns):
                held[event.actor] = event.partitions
        living = [role.actor for role in lives.roles.values()]
        owned = [partition for actor in living for partition in held.get(actor, ())]
        return sorted(owned) == [(TOPIC, number) for number in range(PARTITIONS)]

    lives.wait_until(all_is_owned, "every partition has one owner")


def _feeder(actor: str, broker: ObservedBroker, lives: Lives, rng: random.Random) -> FeederSettings:
    return FeederSettings(
        actor=actor,
        journals=str(lives.folder),
        bootstrap=broker.bootstrap,
        client=broker.clients,
        seed=rng.randrange(1 << 30),
        topic=TOPIC,
        partitions=PARTITIONS,
        pause_seconds=0.02,
    )


def _member(actor: str, broker: ObservedBroker, lives: Lives, rng: random.Random, strategy: str) -> MemberSettings:
    return MemberSettings(
        actor=actor,
        journals=str(lives.folder),
        bootstrap=broker.bootstrap,
        client=broker.clients,
        seed=rng.randrange(1 << 30),
        topic=TOPIC,
        group=READERS,
        strategy=strategy,
    )


@pytest.mark.timeout(3600)
def test_acknowledged_commits_survive_kills(
    start_broker: StartBroker, rng: random.Random, rounds: int, tmp_path: Path
) -> None:
    """The next fetch returns an acknowledged commit, however the coordinator was killed."""
    broker = start_broker(overrides=COORDINATION)
    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        find_coordinator(client, READERS, GROUP)
    journal = Journal(tmp_path, "committer")
    offset = 0
    for _ in range(rounds):
        killer = threading.Timer(rng.uniform(0.0, 0.3), broker.kill)
        killer.start()
        offset = _commit_until_killed(broker, journal, offset)
        killer.join()
        broker.start()
    with broker.client() as client:
        wait_until(lambda: _ask(client, journal), "the committed offset is reported")
    with Client(broker.bootstrap) as client:
        history = History.of(read_journals(tmp_path), read_logs(client, [OFFSETS_TOPIC]))
    assert check(history) == []
    assert len(history.commits) >= rounds


def _commit_until_killed(broker: ObservedBroker, journal: Journal, offset: int) -> int:
    """Ask, commit, ask, and so on: the last offset that was tried."""
    what = {"actor": journal.actor, "group": READERS, "topic": TOPIC, "partition": 0}
    try:
        with RawClient(broker.port) as client:
            while True:
                if not _ask(client, journal):
                    continue  # it loads
                offset += 1
                journal.note(CommitAsked(**what, offset=offset))  # type: ignore[arg-type]
                if commit(client, READERS, TOPIC, {0: offset}) == ErrorCode.NONE:
                    journal.note(CommitAcknowledged(**what, offset=offset))  # type: ignore[arg-type]
    except OSError:
        return offset


def _ask(client: RawClient, journal: Journal) -> bool:
    asked_ns = time.monotonic_ns()
    code, offsets = committed(client, READERS, TOPIC, 0)
    if code != ErrorCode.NONE:
        return False
    journal.note(
        OffsetFetched(
            actor=journal.actor, asked_ns=asked_ns, group=READERS, topic=TOPIC, partition=0, offset=offsets[0]
        )
    )
    return True


def test_a_coordinator_that_loads_says_so_and_never_that_offsets_are_gone(start_broker: StartBroker) -> None:
    """Enough offsets that loading takes a while; requests meanwhile are refused with a retriable error."""
    groups, partitions = 150, 400
    broker = start_broker(overrides=COORDINATION | {"offsets.topic.num.partitions": "1"})
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=partitions) == 0
        find_coordinator(client, READERS, GROUP)
        for number in range(groups):
            assert commit(client, f"{READERS}-{number}", TOPIC, dict.fromkeys(range(partitions), number + 7)) == 0
    broker.kill()
    broker.prepare()
    broker.launch()
    codes: list[int] = []
    last = groups - 1

    def reported() -> bool:
        """Asked as soon as the port is open: not once the broker seems ready."""
        try:
            with RawClient(broker.port) as client:
                while True:
                    code, offsets = committed(client, f"{READERS}-{last}", TOPIC, 0, partitions - 1)
                    codes.append(code)
                    if code == ErrorCode.NONE:
                        assert NOWHERE not in offsets.values(), "committed offsets are gone"
                        assert offsets == {0: last + 7, partitions - 1: last + 7}
                        return True
        except ConnectionError:
            return False

    wait_until(reported, "the committed offsets are reported")
    print(f"{groups * partitions} offsets; refusals before the right response: {len(codes) - 1}")
    assert ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in codes
    assert set(codes) <= {
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
