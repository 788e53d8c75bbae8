"""The members of a cluster on one machine: the programs that they run, and the files that these read."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.child import Child
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ZooKeeperPlan
from kaspar.supervisor.readiness import Contact, metadata_problem, page_problem, service_problem, zookeeper_problem
from kaspar.supervisor.security import (
    contacts_of,
    created_file,
    security_settings,
    trusted_certificate,
    write_security,
)
from kaspar.supervisor.service_settings import service_settings
from kaspar.supervisor.settings import SERVICE_HEAD, broker_settings, check_settings, properties_text

JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""The ZooKeeper of a few brokers does little, so a fast start and few threads matter more than throughput."""

_MORE: Final = {"maxClientCnxns": "0"}  # no limit, because it applies per address, and all brokers share one


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """`problem` returns why the member is not ready, or None if it is. It blocks."""

    name: str
    id: int
    child: Child
    problem: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The Java options of each ZooKeeper server, and additional lines for its file."""

    heap: str = "1g"  # like the default of `kaspar zookeeper`
    jvm_flags: Sequence[str] = JVM_FLAGS
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Members:
    plan: ClusterPlan
    brokers: tuple[Member, ...]
    zookeepers: tuple[Member, ...] = ()
    contacts: Mapping[int, Contact] = field(default_factory=dict)
    """The address of each broker and how to log in to it, by broker id."""
    services: tuple[Member, ...] = ()
    """Empty, or one process."""

    @property
    def all(self) -> tuple[Member, ...]:
        """All members, in the order in which they are started."""
        return self.zookeepers + self.brokers + self.services

    def broker(self, broker_id: int) -> Member:
        for member in self.brokers:
            if member.id == broker_id:
                return member
        raise KasparError(f"there is no broker {broker_id}; brokers: {', '.join(str(m.id) for m in self.brokers)}")


def make_members(
    folder: Folder,
    plan: ClusterPlan,
    overrides: Mapping[str, str],
    *,
    options: ServerOptions | None = None,
    with_metrics: bool = True,
    pipelines: Path | None = None,
) -> Members:
    """Create the members. Writes the plan and then the members' files, so that a later start can resume an interrupted
    first start. `pipelines` is the folder of the pipelines that the console shows, if not the user's own. Raises
    KasparError before anything is written, if the members could not start.
    """
    settings = {
        broker: broker_settings(
            plan,
            broker,
            folder.broker_data(broker.id),
            overrides,
            with_metrics=with_metrics,
            security=security_settings(folder, broker),
        )
        for broker in plan.brokers
    }
    for values in settings.values():
        check_settings(values)
    folder.write_plan(plan)
    if plan.is_secured:
        write_security(folder, plan)
    contacts = contacts_of(folder, plan)
    servers = [_zookeeper(folder, plan, server, options or ServerOptions()) for server in plan.zookeepers]
    brokers = [
        _broker(folder, broker, values, None if with_metrics else contacts[broker.id])
        for broker, values in settings.items()
    ]
    services = (_services(folder, plan, pipelines),) if plan.services else ()
    return Members(plan, tuple(brokers), tuple(servers), contacts, services)


def check_java() -> None:
    """Check that Java and ZooKeeper are installed. Raises KasparError with instructions."""
    from kaspar.spark.running.java import find_java
    from kaspar.zookeeper.server import class_path

    try:
        find_java(for_program="ZooKeeper")
        class_path()
    except KasparError as problem:
        raise KasparError(f"{problem}. A single broker needs neither: omit --brokers") from None


def _broker(folder: Folder, broker: BrokerPlan, values: Mapping[str, str], contact: Contact | None) -> Member:
    """`contact` is used to check whether the broker is ready; if it is None, its page /readyz is."""
    own = folder.broker(broker.id)
    file = own / "server.properties"
    _write(file, properties_text(values))
    child = Child([sys.executable, "-m", "kaspar.cli.main", "broker", str(file)], output=own / "broker.log")
    problem = (
        partial(page_problem, broker.metrics_port) if contact is None else partial(metadata_problem, broker.id, contact)
    )
    return Member(f"broker {broker.id}", broker.id, child, problem)


def _services(folder: Folder, plan: ClusterPlan, pipelines: Path | None) -> Member:
    """One process for all services. It starts together with the brokers, and waits until the brokers provide what it
    needs.
    """
    own = folder.services
    command = [sys.executable, "-m", "kaspar.services"]
    for service in plan.services:
        file = own / f"{service.name}.properties"
        _write_secret(file, properties_text(service_settings(folder, plan, service, pipelines), SERVICE_HEAD))
        command += [f"--{service.name}", str(file)]
    if plan.is_secured:
        command += ["--after", str(created_file(folder))]
    name = f"services ({', '.join(service.name for service in plan.services)})"
    return Member(name, 1, Child(command, output=own / "services.log"), partial(services_problem, folder, plan))


def services_problem(folder: Folder, plan: ClusterPlan) -> str | None:
    trusted = trusted_certificate(folder) if plan.is_secured else None
    problems = (service_problem(service.name, service.port, trusted) for service in plan.services)
    return next(filter(None, problems), None)


def _zookeeper(folder: Folder, plan: ClusterPlan, server: ZooKeeperPlan, options: ServerOptions) -> Member:
    from kaspar.spark.running.java import find_java
    from kaspar.zookeeper import write_config
    from kaspar.zookeeper.config import Member as EnsembleMember
    from kaspar.zookeeper.config import write_id
    from kaspar.zookeeper.server import command

    own = folder.zookeeper(server.id)
    ensemble = [
        EnsembleMember(each.id, peer_port=each.peer_port, election_port=each.election_port) for each in plan.zookeepers
    ]
    is_alone = len(ensemble) == 1
    config = write_config(
        own, client_port=server.port, members=() if is_alone else ensemble, more={**_MORE, **options.more}
    )
    if not is_alone:
        write_id(config, server.id)
    line = command(find_java(for_program="ZooKeeper"), config, options.heap, options.jvm_flags)
    child = Child(line, output=own / "output.log", log_file=config.log_file)
    name = "ZooKeeper" if is_alone else f"ZooKeeper {server.id}"
    return Member(name, server.id, child, partial(zookeeper_problem, server.port))


def _write_secret(file: Path, text: str) -> None:
    """Write a file that only its owner can read, because it may contain a password."""
    from kaspar.security.certificate_files import replace

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, text.encode())
    except OSError as problem:
        raise KasparError(f"{file} cannot be written: {problem.strerror}") from None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise KasparError(f"{file} cannot be written: {problem.strerror}") from None
