"""What runs in the folder of a cluster, seen from another process.

The state of processes is read from the process table, and that of brokers from their pages and over the Kafka protocol.
The file that the supervisor writes only identifies the processes.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum

from kaspar.supervisor.folder import Folder, Running, RunningMember
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ServicePlan, ZooKeeperPlan
from kaspar.supervisor.readiness import ClusterView, first_view, page_problem, service_problem, zookeeper_problem
from kaspar.supervisor.security import clients_can_log_in, contacts_of, trusted_certificate


class MemberState(StrEnum):
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    NOT_READY = "not ready"
    """It was ready since its start, but is not ready now: it hangs, is stopping, or cannot reach others."""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    id: int
    port: int
    pid: int | None
    state: MemberState
    controller: bool
    metrics: str
    log_dir: str


@dataclass(frozen=True, slots=True)
class ZooKeeperStatus:
    id: int
    port: int
    pid: int | None
    state: MemberState


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    name: str
    port: int
    pid: int | None
    state: MemberState
    url: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """`ready`: all members are ready, a broker sees all brokers and the controller, and the users of a secured cluster
    exist.
    """

    ready: bool
    brokers: tuple[BrokerStatus, ...]
    zookeepers: tuple[ZooKeeperStatus, ...]
    services: tuple[ServiceStatus, ...] = ()

    @property
    def states(self) -> list[MemberState]:
        members: list[BrokerStatus | ZooKeeperStatus | ServiceStatus] = [
            *self.brokers,
            *self.zookeepers,
            *self.services,
        ]
        return [member.state for member in members]


NOTHING = ClusterStatus(False, (), ())


def status_of(folder: Folder, plan: ClusterPlan) -> ClusterStatus:
    """The status of a cluster. Takes up to a few seconds, if processes do not respond."""
    running = folder.running()
    with ThreadPoolExecutor(len(plan.brokers) + len(plan.zookeepers) + len(plan.services)) as threads:
        asked = [threads.submit(_service, folder, plan, service, running) for service in plan.services]
        servers = [threads.submit(_zookeeper, server, running) for server in plan.zookeepers]
        brokers = [threads.submit(_broker, broker, running) for broker in plan.brokers]
        zookeepers = tuple(each.result() for each in servers)
        states = [each.result() for each in brokers]
        services = tuple(each.result() for each in asked)
    view = _view(folder, plan, states)
    statuses = tuple(
        BrokerStatus(
            id=broker.id,
            port=broker.port,
            pid=pid,
            state=state,
            controller=view is not None and view.controller_id == broker.id,
            metrics=broker.metrics_address,
            log_dir=str(folder.broker_data(broker.id)),
        )
        for broker, (pid, state) in zip(plan.brokers, states, strict=True)
    )
    is_complete = view is not None and view.is_complete(plan) and clients_can_log_in(folder, plan)
    status = ClusterStatus(is_complete, statuses, zookeepers, services)
    return status if set(status.states) == {MemberState.READY} else replace(status, ready=False)


def _view(folder: Folder, plan: ClusterPlan, states: list[tuple[int | None, MemberState]]) -> ClusterView | None:
    """The view of a broker that is ready: the metadata of others may be outdated."""
    ready = [broker.id for broker, (_, state) in zip(plan.brokers, states, strict=True) if state is MemberState.READY]
    contacts = contacts_of(folder, plan) if ready else {}
    return first_view([contacts[broker_id] for broker_id in ready])


def _broker(broker: BrokerPlan, running: Running | None) -> tuple[int | None, MemberState]:
    member = None if running is None else running.brokers.get(broker.id)
    return _state(member, lambda: page_problem(broker.metrics_port))


def _zookeeper(server: ZooKeeperPlan, running: Running | None) -> ZooKeeperStatus:
    member = None if running is None else running.zookeepers.get(server.id)
    return ZooKeeperStatus(server.id, server.port, *_state(member, lambda: zookeeper_problem(server.port)))


def _service(folder: Folder, plan: ClusterPlan, service: ServicePlan, running: Running | None) -> ServiceStatus:
    trusted = trusted_certificate(folder) if plan.is_secured else None
    member = None if running is None else running.services
    pid, state = _state(member, lambda: service_problem(service.name, service.port, trusted))
    return ServiceStatus(service.name, service.port, pid, state, plan.service_urls[service.name])


def _state(member: RunningMember | None, problem: Callable[[], str | None]) -> tuple[int | None, MemberState]:
    if member is None or member.process is None or not member.process.is_running():
        return None, MemberState.STOPPED
    if problem() is None:
        return member.process.pid, MemberState.READY
    return member.process.pid, MemberState.NOT_READY if member.was_ready else MemberState.STARTING
