"""Instances that are killed and paused under load, and brokers too: nothing acknowledged is lost or given twice."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.integration.registry.instances import QUICK_GROUPS, Registry, leader_of, registries, wait_until
from tests.integration.registry.load import RegistrationLoad, check
from tests.peers.kafka import ApacheKafka
from tests.peers.kaspar import KasparProcess
from tests.peers.process import BrokerProcess

_BETWEEN_FAULTS = 30
_SETTINGS = {
    "schema.compatibility.level": "NONE",
    "schema.search.default.limit": "1000000",
    "schema.search.max.limit": "1000000",
}


def kill_leader(instances: Sequence[Registry], load: RegistrationLoad, broker: BrokerProcess) -> None:
    leader = leader_of(instances)
    leader.kill()
    leader_of(instances)
    load.wait_for_more(_BETWEEN_FAULTS)
    leader.start()


def kill_follower(instances: Sequence[Registry], load: RegistrationLoad, broker: BrokerProcess) -> None:
    leader = leader_of(instances)
    follower = next(instance for instance in instances if instance is not leader)
    follower.kill()
    load.wait_for_more(_BETWEEN_FAULTS)
    follower.start()


def pause_leader(instances: Sequence[Registry], load: RegistrationLoad, broker: BrokerProcess) -> None:
    leader = leader_of(instances)
    leader.pause()
    leader_of([instance for instance in instances if instance is not leader])
    load.wait_for_more(_BETWEEN_FAULTS)
    leader.resume()
    load.wait_for_more(_BETWEEN_FAULTS)


def stop_leader(instances: Sequence[Registry], load: RegistrationLoad, broker: BrokerProcess) -> None:
    leader = leader_of(instances)
    assert leader.stop() == 0
    load.wait_for_more(_BETWEEN_FAULTS)
    leader.start()


def kill_broker(instances: Sequence[Registry], load: RegistrationLoad, broker: BrokerProcess) -> None:
    broker.kill()
    broker.start()
    load.wait_for_more(_BETWEEN_FAULTS)


Fault = Callable[[Sequence[Registry], RegistrationLoad, BrokerProcess], None]
FAULTS: tuple[Fault, ...] = (kill_leader, kill_follower, pause_leader, stop_leader, kill_broker)


def run(broker: BrokerProcess, folder: Path, faults: Sequence[Fault], rng: random.Random) -> None:
    with registries(folder, broker.bootstrap, 3, _SETTINGS) as instances, RegistrationLoad(instances, rng) as load:
        load.wait_for_more(_BETWEEN_FAULTS)
        for fault in faults:
            fault(instances, load, broker)
            for instance in instances:
                wait_until(instance.responds, f"{instance.name} is back")
        load.wait_for_more(_BETWEEN_FAULTS)
        load.__exit__(None, None, None)
        check(load, instances)
        for instance in instances:
            assert "Traceback" not in instance.log_text()


def test_registrations_survive_faults(tmp_path: Path, rng: random.Random) -> None:
    with KasparProcess(tmp_path / "broker", overrides=QUICK_GROUPS) as broker:
        run(broker, tmp_path, [kill_leader, kill_follower, pause_leader], rng)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_registrations_survive_many_faults(tmp_path: Path, rng: random.Random) -> None:
    with KasparProcess(tmp_path / "broker", overrides=QUICK_GROUPS) as broker:
        run(broker, tmp_path, [rng.choice(FAULTS) for _ in range(30)], rng)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transaction_version", [0, 2])
def test_registrations_survive_faults_on_apache_kafka(
    tmp_path: Path, rng: random.Random, transaction_version: int
) -> None:
    features = {"transaction.version": transaction_version}
    with ApacheKafka(tmp_path / "broker", overrides=QUICK_GROUPS, features=features) as broker:
        run(broker, tmp_path, FAULTS, rng)
