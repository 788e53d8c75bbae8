"""`kaspar up`: runs a cluster, or a single broker, on this machine, in the foreground."""

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command
from kaspar.web.catalogue import SERVICES

if TYPE_CHECKING:
    from kaspar.supervisor.folder import Folder
    from kaspar.supervisor.members import Members
    from kaspar.supervisor.plan import ClusterPlan
    from kaspar.supervisor.service_plan import ServiceWishes

DEFAULT_FOLDER: Final = Path("kaspar-data")

_DESCRIPTION: Final = """\
Run brokers on this machine until Ctrl-C or SIGTERM. One broker stores its metadata itself. Several form a
cluster with up to three replicas of each topic; ZooKeeper, which is started too, stores its metadata.
The schema registry, the REST proxy, the monitor and the console run alongside, if kaspar[console] is installed.
A process that exits is restarted. Everything listens on 127.0.0.1 only.
With --secure, clients must authenticate over TLS, and ACLs are enforced.
"""
_EXAMPLES: Final = """\
examples:
  kaspar up                                   one broker on 127.0.0.1:9092, the console on http://127.0.0.1:8080
  kaspar up --brokers 3                       a cluster on ports 9092, 9093 and 9094; needs Java and kaspar[spark]
  kaspar up --brokers 3 --zookeepers 3        also survives the loss of a ZooKeeper server
  kaspar up --brokers 3 --dir /data/c1 --port 19092 --override num.partitions=6
  kaspar up --dir /data/c1                    restart with the same data, number of brokers and ports
  kaspar up --registry-port 0 --rest-port 0   any free ports; 'kaspar status' shows them
  kaspar up --only console                    no other services; --only '' runs brokers only
  kaspar up --secure                          TLS, passwords and ACLs; settings for clients are in FOLDER/clients

While it runs, in another terminal:
  kaspar status --wait 30                     what is running, and which broker is the controller
  kaspar stop                                 stop it, like Ctrl-C

Each broker has a folder broker-N in the folder of --dir: server.properties, broker.log, logs/ and data/.
"""


def folder_option(function: Callable[..., int]) -> Callable[..., int]:
    return click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path),
        default=DEFAULT_FOLDER,
        metavar="FOLDER",
        help=f"Folder for all data, settings and logs of the cluster (default: ./{DEFAULT_FOLDER}).",
    )(function)


@dataclass(frozen=True, slots=True)
class UpOptions:
    brokers: int | None
    port: int | None
    zookeepers: int | None
    secure: bool
    override: Sequence[str]
    ports: Mapping[str, int | None]
    """The ports of services, by name."""
    without: str | None
    only: str | None
    pipelines: Path | None

    @property
    def services(self) -> "ServiceWishes":
        from kaspar.supervisor.service_plan import ServiceWishes

        return ServiceWishes(self.ports, _names(self.without) or (), _names(self.only))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def service_port_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options --registry-port and so on, as `registry_port`."""
    for service in reversed([*SERVICES.values()]):
        function = click.option(
            f"--{service.name}-port",
            type=int,
            metavar="PORT",
            help=f"Port of the {service.title}; 0 for any free port (default: as before in this folder, or "
            f"{service.port}).",
        )(function)
    return function


@click.command("up", cls=Command, help=_DESCRIPTION, epilog=_EXAMPLES)
@click.option(
    "--brokers",
    type=int,
    metavar="N",
    help="Number of brokers (default: the number already in the folder, or 1). It can be increased later, but not "
    "decreased.",
)
@folder_option
@click.option(
    "--port",
    type=int,
    metavar="PORT",
    help="Port of broker 1; the next brokers use the next ports (default: as before in this folder, or 9092).",
)
@click.option(
    "--zookeepers",
    type=int,
    metavar="N",
    help="Number of ZooKeeper servers of a new cluster: 1 (default), or 3 to tolerate the loss of one.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Clients authenticate over TLS, as one of two users that are created at the first start: 'admin', who may "
    "do everything, and 'client', who may create, read and write topics. A secured folder stays secured.",
)
@click.option(
    "--override",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of every broker, with Kafka's name; may be repeated. Not saved; pass it on every start.",
)
@service_port_options
@click.option(
    "--without",
    metavar="SERVICES",
    help=f"Do not run these services, now and at later starts; comma-separated, from {', '.join(SERVICES)}.",
)
@click.option("--only", metavar="SERVICES", help="Run only these services, now and at later starts.")
@click.option(
    "--pipelines",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the pipelines that the console shows (default: that of 'kaspar pipeline'). Not saved.",
)
def command(folder: Path, **given: Any) -> int:
    from kaspar.supervisor.folder import Folder

    ports = {name: given.pop(f"{name}_port") for name in SERVICES}
    return run_up(Folder(folder), UpOptions(ports=ports, **given))


def run_up(folder: "Folder", options: UpOptions) -> int:
    from kaspar.supervisor.supervisor import Supervisor

    folder.plan()  # checked before the lock creates a file, so that a folder with other contents is not changed
    with folder.locked():
        earlier = folder.plan()
        members = _prepare(folder, options)
        has_grown = earlier is not None and len(earlier.brokers) < len(members.brokers)
        return Supervisor(
            folder,
            members,
            _say,
            when_complete=partial(_complete, folder, members, options, has_grown=has_grown),
            when_ready=partial(_print_ready, folder, members.plan),
        ).run()


def _complete(folder: "Folder", members: "Members", options: UpOptions, *, has_grown: bool) -> None:
    """Do the work that needs all brokers, before the cluster is reported as ready."""
    if has_grown:
        _keep_settings(members, options)
    if members.plan.is_secured:
        from kaspar.supervisor.security import create_users

        create_users(folder, members.contacts)


def _print_ready(folder: "Folder", plan: "ClusterPlan", seconds: float) -> None:
    """Print that the cluster is ready. Passwords are shown only on a terminal, because other output may be stored where
    others can read it.
    """
    from kaspar.cli.up_screen import ready_lines

    is_terminal = sys.stdout.isatty()
    lines = ready_lines(folder, plan, seconds=seconds, default_folder=DEFAULT_FOLDER, on_a_terminal=is_terminal)
    if plan.is_secured:
        from kaspar.supervisor.security import client_lines

        lines += client_lines(folder, plan, with_passwords=is_terminal)
    for line in lines:
        _say(line)


def _keep_settings(members: "Members", options: UpOptions) -> None:
    """Raise min.insync.replicas of a cluster that has grown."""
    from kaspar.config import load_settings
    from kaspar.supervisor.cluster_settings import MIN_INSYNC_REPLICAS, keep_min_insync_replicas
    from kaspar.supervisor.settings import replication_settings

    plan = members.plan
    values = {**replication_settings(len(plan.brokers)), **load_settings(None, options.override)}
    try:
        keep_min_insync_replicas(members.contacts[1], values[MIN_INSYNC_REPLICAS])
    except (KasparError, OSError) as problem:
        _say(f"{MIN_INSYNC_REPLICAS} was not raised for the larger cluster: {problem}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the reader of the output is gone, but the brokers keep running
        print(line, flush=True)


def _prepare(folder: "Folder", options: UpOptions) -> "Members":
    """Make all checks that can fail before anything is started, and prepare the members."""
    from kaspar.config import load_settings, warnings_about
    from kaspar.pipelines.folder import default_folder
    from kaspar.supervisor.members import check_java, make_members
    from kaspar.supervisor.plan import plan_of, size_of
    from kaspar.supervisor.ports import free_ports, refuse_used_ports, refuse_used_service_ports
    from kaspar.supervisor.service_plan import plan_services
    from kaspar.supervisor.settings import check_overrides
    from kaspar.supervisor.supervisor import end_leftovers

    overrides = load_settings(None, options.override)
    check_overrides(overrides)
    wishes = options.services
    wishes.check()
    earlier = folder.plan()
    size = size_of(
        folder.path,
        earlier,
        brokers=options.brokers,
        port=options.port,
        zookeepers=options.zookeepers,
        secure=options.secure,
    )
    if size.zookeepers:
        check_java()
    end_leftovers(folder)
    refuse_used_ports(size.broker_ports)
    reserved = set(size.broker_ports)
    services = plan_services(wishes, size, earlier, _installed(wishes, earlier), partial(free_ports, reserved=reserved))
    refuse_used_service_ports(services)
    reserved |= {service.port for service in services}
    plan = plan_of(
        size,
        earlier,
        partial(free_ports, reserved=reserved),
        services=services,
        left_out=wishes.left_out(earlier),
    )
    members = make_members(folder, plan, overrides, pipelines=options.pipelines or default_folder())
    for sentence in warnings_about(overrides):
        print(f"kaspar: {sentence}", file=sys.stderr)
    return members


def _installed(wishes: "ServiceWishes", earlier: "ClusterPlan | None") -> list[str]:
    """The services whose packages are installed. A missing package is an error if its service was requested, otherwise
    a notice.
    """
    from kaspar.services.extras import check_installed, missing_packages

    for name in sorted(wishes.must_be_installed):
        check_installed(name)
    missing = [name for name in SERVICES if name not in wishes.left_out(earlier) and missing_packages(name)]
    if missing:
        _say(f"Without {', '.join(missing)}: pip install 'kaspar[{','.join(missing)}]' adds what they need.")
    return [name for name in SERVICES if name not in missing]
