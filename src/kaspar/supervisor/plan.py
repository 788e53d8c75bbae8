"""The size of a cluster, the ports of its members, and what may change when it is started again.

Pure. The plan is stored in the cluster's folder. Clients know the brokers' ports, so these are consecutive from one
number. The ports of ZooKeeper and of the metrics pages are any free ones, and are kept while they are free.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError

HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092
LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    id: int
    port: int
    metrics_port: int
    inside_port: int | None = None
    """The port for brokers and the supervisor, if the cluster is secured. Clients use `port`."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def metrics_address(self) -> str:
        return f"{HOST}:{self.metrics_port}"


@dataclass(frozen=True, slots=True)
class ZooKeeperPlan:
    id: int
    port: int
    peer_port: int
    election_port: int


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """An HTTP service. All services run in one process."""

    name: str
    port: int
    any_port: bool = False
    """Any free port was requested, so another is chosen if this one is in use when the cluster is started again."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A plan without ZooKeeper is one broker with the embedded store."""

    brokers: tuple[BrokerPlan, ...]
    zookeepers: tuple[ZooKeeperPlan, ...] = ()
    services: tuple[ServicePlan, ...] = ()
    left_out: tuple[str, ...] = ()
    """Services that the user has disabled. A service that is neither here nor in `services` was not installed, or did
    not exist yet when the folder was created: it is started as soon as possible."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    @property
    def is_secured(self) -> bool:
        return any(broker.inside_port is not None for broker in self.brokers)

    @property
    def service_urls(self) -> dict[str, str]:
        scheme = "https" if self.is_secured else "http"
        return {service.name: f"{scheme}://{HOST}:{service.port}" for service in self.services}

    @property
    def zookeeper_connect(self) -> str:
        return ",".join(f"{HOST}:{server.port}" for server in self.zookeepers)


@dataclass(frozen=True, slots=True)
class Size:
    """The brokers' ports and the number of members. One broker has zero ZooKeeper servers."""

    brokers: int
    port: int
    zookeepers: int
    is_secured: bool = False

    @property
    def broker_ports(self) -> range:
        return range(self.port, self.port + self.brokers)


def size_of(
    folder: Path,
    earlier: ClusterPlan | None,
    *,
    brokers: int | None = None,
    port: int | None = None,
    zookeepers: int | None = None,
    secure: bool = False,
) -> Size:
    """The size of the cluster to start in a folder. Arguments that are None keep the value of the `earlier` start, and
    a secured cluster remains secured.

    Raises KasparError if the data in the folder does not allow the change.
    """
    _check_given(brokers, port, zookeepers)
    if earlier is None:
        count = brokers or 1
        size = Size(count, port or DEFAULT_PORT, 0 if count == 1 else zookeepers or 1, secure)
    else:
        _check_change(folder, earlier, brokers, zookeepers)
        count = brokers or len(earlier.brokers)
        size = Size(count, port or earlier.brokers[0].port, len(earlier.zookeepers), secure or earlier.is_secured)
    if size.zookeepers == 0 and zookeepers is not None:
        raise KasparError(
            "--zookeepers requires a cluster, since a single broker stores its metadata itself: add --brokers 3"
        )
    if size.broker_ports[-1] > LAST_PORT:
        raise KasparError(f"{size.brokers} brokers from port {size.port} on would need ports above {LAST_PORT}")
    return size


def _check_given(brokers: int | None, port: int | None, zookeepers: int | None) -> None:
    if brokers is not None and brokers < 1:
        raise KasparError(f"a cluster needs at least one broker, not {brokers}")
    if zookeepers is not None and zookeepers < 1:
        raise KasparError(f"a cluster needs at least one ZooKeeper server, not {zookeepers}")
    if port is not None and not 1 <= port <= LAST_PORT:
        raise KasparError(f"the port must be between 1 and {LAST_PORT}, not {port}")


def _check_change(folder: Path, earlier: ClusterPlan, brokers: int | None, zookeepers: int | None) -> None:
    had = len(earlier.brokers)
    if not earlier.zookeepers and brokers is not None and brokers > 1:
        raise KasparError(
            f"{folder} has the data of a single broker, which 'kaspar up' cannot turn into a cluster: start it without "
            "--brokers, or start a cluster in another folder with --dir"
        )
    if brokers is not None and brokers < had:
        raise KasparError(
            f"{folder} has the data of {had} brokers, and with only {brokers} replicas would be missing: start it "
            f"with --brokers {had}, or start a smaller cluster in another folder with --dir"
        )
    if earlier.zookeepers and zookeepers not in (None, len(earlier.zookeepers)):
        raise KasparError(
            f"{folder} has the data of {len(earlier.zookeepers)} ZooKeeper server(s), and their number cannot "
            "change: omit --zookeepers, or start a cluster in another folder with --dir"
        )


def plan_of(
    size: Size,
    earlier: ClusterPlan | None,
    free_ports: Callable[[list[int]], Iterator[int]],
    *,
    services: tuple[ServicePlan, ...] = (),
    left_out: tuple[str, ...] = (),
) -> ClusterPlan:
    """The plan, with ports for all members. `free_ports` yields the wanted ports in order, with a substitute for each
    that is not free, and then an endless sequence of others.
    """
    wanted = [] if earlier is None else _other_ports(earlier)
    ports = free_ports(wanted)
    zookeepers = tuple(
        ZooKeeperPlan(number, next(ports), next(ports), next(ports)) for number in range(1, size.zookeepers + 1)
    )
    brokers = tuple(
        BrokerPlan(number, port, next(ports), next(ports) if size.is_secured else None)
        for number, port in enumerate(size.broker_ports, 1)
    )
    return ClusterPlan(brokers, zookeepers, services, left_out)


def _other_ports(plan: ClusterPlan) -> list[int]:
    """The ports that `plan_of` takes from `free_ports`, in its order: first the ZooKeeper servers', whose number does
    not change.
    """
    of_zookeeper = [port for each in plan.zookeepers for port in (each.port, each.peer_port, each.election_port)]
    of_brokers = [port for each in plan.brokers for port in (each.metrics_port, each.inside_port)]
    return of_zookeeper + [port for port in of_brokers if port is not None]
