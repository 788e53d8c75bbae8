"""What is started in a folder: sizes, ports, and what may change at a later start."""

from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, Size, ZooKeeperPlan, plan_of, size_of

FOLDER = Path("/data/c1")
SINGLE = ClusterPlan((BrokerPlan(1, 9092, 9404),))
THREE = ClusterPlan(
    tuple(BrokerPlan(number, 19_091 + number, 9_403 + number) for number in (1, 2, 3)),
    (ZooKeeperPlan(1, 2181, 2888, 3888),),
)


def _ports(wanted: list[int]) -> Iterator[int]:
    """All are free."""
    return chain(wanted, count(20_000))


def _refusal(
    earlier: ClusterPlan | None = None,
    *,
    brokers: int | None = None,
    port: int | None = None,
    zookeepers: int | None = None,
) -> str:
    with pytest.raises(KasparError) as refused:
        size_of(FOLDER, earlier, brokers=brokers, port=port, zookeepers=zookeepers)
    return str(refused.value)


def test_new_folder_without_options_is_one_broker_without_zookeeper() -> None:
    assert size_of(FOLDER, None) == Size(1, 9092, 0)
    assert size_of(FOLDER, None, brokers=1, port=7000) == Size(1, 7000, 0)


def test_several_brokers_are_a_cluster_with_zookeeper() -> None:
    assert size_of(FOLDER, None, brokers=2) == Size(2, 9092, 1)
    assert size_of(FOLDER, None, brokers=5, port=100, zookeepers=3) == Size(5, 100, 3)


def test_what_is_not_given_stays_as_it_was() -> None:
    assert size_of(FOLDER, THREE) == Size(3, 19_092, 1)
    assert size_of(FOLDER, THREE, brokers=3, zookeepers=1) == Size(3, 19_092, 1)
    assert size_of(FOLDER, THREE, port=7000) == Size(3, 7000, 1)
    assert size_of(FOLDER, SINGLE) == Size(1, 9092, 0)


def test_cluster_may_grow_and_not_shrink() -> None:
    assert size_of(FOLDER, THREE, brokers=4) == Size(4, 19_092, 1)
    sentence = _refusal(THREE, brokers=2)
    assert sentence.startswith("/data/c1 has the data of 3 brokers")
    assert "--brokers 3" in sentence
    assert "--dir" in sentence
    assert "has the data of 3 brokers" in _refusal(THREE, brokers=1)


def test_single_broker_does_not_become_a_cluster() -> None:
    assert "a single broker, which 'kaspar up' cannot turn into a cluster" in _refusal(SINGLE, brokers=3)


def test_number_of_zookeeper_servers_does_not_change() -> None:
    assert "their number cannot change" in _refusal(THREE, zookeepers=3)


def test_zookeeper_servers_of_a_single_broker_are_refused() -> None:
    for earlier in (None, SINGLE):
        assert _refusal(earlier, zookeepers=1).startswith("--zookeepers requires a cluster")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"brokers": 0}, "a cluster needs at least one broker, not 0"),
        ({"brokers": 3, "zookeepers": 0}, "a cluster needs at least one ZooKeeper server, not 0"),
        ({"port": 0}, "the port must be between 1 and 65535, not 0"),
        ({"port": 65_536}, "the port must be between 1 and 65535, not 65536"),
        ({"brokers": 3, "port": 65_534}, "3 brokers from port 65534 on would need ports above 65535"),
    ],
)
def test_numbers_out_of_range_are_refused(wanted: dict[str, int], sentence: str) -> None:
    assert _refusal(None, **wanted) == sentence


def test_brokers_listen_on_consecutive_ports() -> None:
    plan = plan_of(Size(3, 9092, 1), None, _ports)
    assert [(broker.id, broker.port) for broker in plan.brokers] == [(1, 9092), (2, 9093), (3, 9094)]
    assert plan.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    assert plan.zookeeper_connect == "127.0.0.1:20000"
    assert [broker.metrics_port for broker in plan.brokers] == [20_003, 20_004, 20_005]


def test_ports_of_an_earlier_start_are_used_again_also_when_the_cluster_grows() -> None:
    plan = plan_of(Size(4, 19_092, 1), THREE, _ports)
    assert plan.zookeepers == THREE.zookeepers
    assert plan.brokers[:3] == THREE.brokers
    assert plan.brokers[3] == BrokerPlan(4, 19_095, 20_000)


def test_ensemble_names_all_its_servers() -> None:
    plan = plan_of(Size(3, 9092, 3), None, _ports)
    assert plan.zookeeper_connect == "127.0.0.1:20000,127.0.0.1:20003,127.0.0.1:20006"
    assert len({port for each in plan.zookeepers for port in (each.port, each.peer_port, each.election_port)}) == 9


def test_secured_brokers_have_a_port_for_each_other_which_stays() -> None:
    size = size_of(FOLDER, None, brokers=2, secure=True)
    plan = plan_of(size, None, _ports)
    assert plan.is_secured
    assert (
        len({port for broker in plan.brokers for port in (broker.port, broker.metrics_port, broker.inside_port)}) == 6
    )
    again = plan_of(size_of(FOLDER, plan, brokers=3), plan, _ports)
    assert again.brokers[:2] == plan.brokers
    assert again.brokers[2].inside_port is not None


def test_folder_that_was_not_secured_can_be() -> None:
    assert not plan_of(size_of(FOLDER, THREE), THREE, _ports).is_secured
    plan = plan_of(size_of(FOLDER, THREE, secure=True), THREE, _ports)
    assert plan.is_secured
    assert [broker.port for broker in plan.brokers] == [broker.port for broker in THREE.brokers]
    assert plan.zookeepers == THREE.zookeepers
