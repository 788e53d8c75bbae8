"""What can happen to a cluster on three machines: to processes, links, the ensemble, clocks and disks.

Each fault ends by itself, and leaves everything running and connected. `FAULTS` are all of them.
"""

import random
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata

from tests.chaos.faulty_clock import FaultyClock
from tests.peers.machines import NUMBERS, ClusterOfMachines
from tests.peers.observed import wait_until

HOUR, DAY = 3600, 86_400
FOUND_S = 60.0
LOOK_S = 10.0
_FILLED_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Scene:
    """`session_s` is how long a broker may be silent. `disks` are the brokers' file systems."""

    cluster: ClusterOfMachines
    rng: random.Random
    topic: str
    session_s: float
    clocks: Mapping[int, FaultyClock]
    disks: Mapping[int, Path]
    admin: AdminClient

    def pause(self, *seconds: float) -> None:
        threading.Event().wait(self.rng.choice(seconds) if seconds else self.rng.uniform(0.0, 1.0))

    def less_or_more_than_a_session(self) -> None:
        self.pause(self.session_s / 4, self.session_s + 2.5)

    def machine(self, number: int) -> str:
        return f"k{number}"

    def others(self, number: int) -> list[str]:
        return [self.machine(each) for each in NUMBERS if each != number]

    # -- who is who now ------------------------------------------------------------------------------------------------

    def metadata(self) -> ClusterMetadata | None:
        """None while no broker responds."""
        try:
            return self.admin.list_topics(timeout=LOOK_S)
        except KafkaException:
            return None

    def partitions(self) -> Mapping[int, PartitionMetadata]:
        found = self.metadata()
        return found.topics[self.topic].partitions if found is not None and self.topic in found.topics else {}

    def leader(self) -> int:
        """Of one of the partitions."""
        leaders: list[int] = []

        def are_found() -> bool:
            leaders[:] = [each.leader for each in self.partitions().values() if each.leader in NUMBERS]
            return bool(leaders)

        wait_until(are_found, "a partition has a leader", seconds=FOUND_S)
        return self.rng.choice(leaders)

    def follower(self) -> int:
        leader = self.leader()
        return self.rng.choice([number for number in NUMBERS if number != leader])

    def controller(self) -> int:
        found: list[int] = []

        def is_found() -> bool:
            metadata = self.metadata()
            found[:] = [] if metadata is None else [metadata.controller_id]
            return found != [] and found[0] in NUMBERS

        wait_until(is_found, "there is a controller", seconds=FOUND_S)
        return found[0]

    def is_in_sync(self) -> bool:
        found = self.metadata()
        return found is not None and all(
            len(each.isrs) == len(each.replicas)
            for topic in found.topics.values()
            for each in topic.partitions.values()
        )


Fault: TypeAlias = Callable[[Scene], None]


# -- processes ---------------------------------------------------------------------------------------------------------


def kill_leader(scene: Scene) -> None:
    _kill(scene, scene.leader())


def kill_controller(scene: Scene) -> None:
    _kill(scene, scene.controller())


def kill_two(scene: Scene) -> None:
    """With `min.insync.replicas` 2 nothing is acknowledged until one of them is back."""
    first, second = scene.rng.sample(NUMBERS, 2)
    scene.cluster.brokers[first].kill()
    _kill(scene, second)
    scene.cluster.brokers[first].start()


def lose_machine(scene: Scene) -> None:
    """Power: the broker and the ZooKeeper server, both silent at once and for longer than a session."""
    number = scene.leader()
    scene.cluster.network.cut_off(scene.machine(number))
    scene.cluster.brokers[number].kill()
    scene.cluster.zookeepers[number].kill()
    scene.less_or_more_than_a_session()
    scene.cluster.network.restore()
    scene.cluster.zookeepers[number].start()
    scene.cluster.brokers[number].start()


def pause_leader(scene: Scene) -> None:
    _pause(scene, scene.leader())


def pause_controller(scene: Scene) -> None:
    _pause(scene, scene.controller())


def restart_all_in_turn(scene: Scene) -> None:
    for number in scene.rng.sample(NUMBERS, len(NUMBERS)):
        code = scene.cluster.brokers[number].stop()
        assert code == 0, f"broker {number} ended with code {code}"
        scene.cluster.brokers[number].start()
        wait_until(scene.is_in_sync, "every replica is in sync again", seconds=FOUND_S)


def _kill(scene: Scene, number: int) -> None:
    scene.cluster.brokers[number].kill()
    scene.less_or_more_than_a_session()
    scene.cluster.brokers[number].start()


def _pause(scene: Scene, number: int) -> None:
    """When it goes on, it does not know whether it still leads or controls."""
    scene.cluster.brokers[number].signal(signal.SIGSTOP)
    scene.less_or_more_than_a_session()
    scene.cluster.brokers[number].signal(signal.SIGCONT)


# -- the network -------------------------------------------------------------------------------------------------------


def cut_off_follower(scene: Scene) -> None:
    scene.cluster.network.cut_off(scene.machine(scene.follower()))
    _restore_later(scene)


def cut_off_leader(scene: Scene) -> None:
    """From all, clients too."""
    scene.cluster.network.cut_off(scene.machine(scene.leader()))
    _restore_later(scene)


def cut_off_leader_with_clients(scene: Scene) -> None:
    """Clients still reach a leader that no other machine reaches."""
    number = scene.leader()
    scene.cluster.network.cut_off(scene.machine(number), from_=scene.others(number))
    _restore_later(scene)


def cut_off_controller(scene: Scene) -> None:
    number = scene.controller()
    scene.cluster.network.cut_off(scene.machine(number), from_=scene.others(number))
    _restore_later(scene)


def cut_off_all(scene: Scene) -> None:
    """Every machine is alone, and no majority is left: clients reach all of them."""
    for number in NUMBERS:
        scene.cluster.network.cut_off(scene.machine(number), from_=scene.others(number))
    _restore_later(scene)


def cut_leader_outwards(scene: Scene) -> None:
    """It hears the others, and they do not hear it."""
    number = scene.leader()
    for other in scene.others(number):
        scene.cluster.network.cut(scene.machine(number), to=other)
    _restore_later(scene)


def cut_controller_inwards(scene: Scene) -> None:
    """The others hear it, and it hears nobody."""
    number = scene.controller()
    for other in scene.others(number):
        scene.cluster.network.cut(other, to=scene.machine(number))
    _restore_later(scene)


def cut_one_link(scene: Scene) -> None:
    """Two machines do not reach each other, and the third reaches both."""
    one, other = scene.rng.sample(NUMBERS, 2)
    scene.cluster.network.cut_off(scene.machine(one), from_=[scene.machine(other)])
    _restore_later(scene)


def lose_packets(scene: Scene) -> None:
    scene.cluster.network.lose(scene.machine(scene.leader()), percent=scene.rng.choice((5, 25)))
    _restore_later(scene)


def slow_link(scene: Scene) -> None:
    scene.cluster.network.slow_down(scene.machine(scene.leader()), kilobits_per_second=scene.rng.choice((300, 2000)))
    _restore_later(scene)


def _restore_later(scene: Scene) -> None:
    scene.less_or_more_than_a_session()
    scene.cluster.network.restore()


# -- the ensemble ------------------------------------------------------------------------------------------------------


def kill_zookeeper(scene: Scene) -> None:
    server = scene.cluster.zookeepers[scene.rng.choice(NUMBERS)]
    server.kill()
    scene.pause()
    server.start()


def kill_two_zookeepers(scene: Scene) -> None:
    """No majority is left: records flow, and nothing can be elected."""
    first, second = (scene.cluster.zookeepers[number] for number in scene.rng.sample(NUMBERS, 2))
    first.kill()
    second.kill()
    scene.less_or_more_than_a_session()
    first.launch()
    second.start()
    wait_until(first.serves, "ZooKeeper serves", seconds=FOUND_S)


def pause_zookeeper(scene: Scene) -> None:
    server = scene.cluster.zookeepers[scene.rng.choice(NUMBERS)]
    server.signal(signal.SIGSTOP)
    scene.less_or_more_than_a_session()
    server.signal(signal.SIGCONT)


# -- clocks and disks --------------------------------------------------------------------------------------------------


def jump_clocks(scene: Scene) -> None:
    """Each broker has another time, and then the right one."""
    for clock in scene.clocks.values():
        clock.set_ahead(scene.rng.choice((-DAY, -HOUR, 0, HOUR, DAY)))
    scene.less_or_more_than_a_session()
    for clock in scene.clocks.values():
        clock.set_ahead(0)


def fill_disk(scene: Scene) -> None:
    filler = scene.disks[scene.leader()] / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(bytes(_FILLED_AT_ONCE)):
                pass
    except OSError:
        scene.less_or_more_than_a_session()
    filler.unlink()


FAULTS: tuple[Fault, ...] = (
    kill_leader,
    kill_controller,
    kill_two,
    lose_machine,
    pause_leader,
    pause_controller,
    restart_all_in_turn,
    cut_off_follower,
    cut_off_leader,
    cut_off_leader_with_clients,
    cut_off_controller,
    cut_off_all,
    cut_leader_outwards,
    cut_controller_inwards,
    cut_one_link,
    lose_packets,
    slow_link,
    kill_zookeeper,
    kill_two_zookeepers,
    pause_zookeeper,
    jump_clocks,
    fill_disk,
)
