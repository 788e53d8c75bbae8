"""Which HTTP services a cluster has, and on which ports, given the request of this start and the earlier plan.

Pure, like `plan`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kaspar.base.errors import KasparError
from kaspar.supervisor.plan import LAST_PORT, ClusterPlan, ServicePlan, Size
from kaspar.web.catalogue import SERVICES


@dataclass(frozen=True, slots=True)
class ServiceWishes:
    """The services that a start requests. Port 0 means any free port, None the earlier one."""

    ports: Mapping[str, int | None] = field(default_factory=dict)
    without: Collection[str] = ()
    only: Collection[str] | None = None

    def check(self) -> None:
        """Raises KasparError if the options contradict each other."""
        for name in (*self.without, *(self.only or ())):
            if name not in SERVICES:
                raise KasparError(f"there is no service '{name}'; services: {', '.join(SERVICES)}")
        if self.without and self.only is not None:
            raise KasparError("--without and --only cannot be combined")
        for name in self.asked_for:
            if name in self._unwanted:
                raise KasparError(f"--{name}-port is given, but the service is disabled")
            if not 0 <= (self.ports[name] or 0) <= LAST_PORT:
                raise KasparError(f"the port must be between 0 and {LAST_PORT}, not {self.ports[name]}")

    @property
    def asked_for(self) -> set[str]:
        """The names of the services for which a port was given."""
        return {name for name, port in self.ports.items() if port is not None}

    @property
    def _unwanted(self) -> set[str]:
        return set(self.without) if self.only is None else set(SERVICES) - set(self.only)

    def left_out(self, earlier: ClusterPlan | None) -> tuple[str, ...]:
        if self.only is not None:
            left_out = self._unwanted
        else:
            before = set(() if earlier is None else earlier.left_out)
            left_out = (before - self.asked_for) | self._unwanted
        return tuple(sorted(left_out))

    @property
    def must_be_installed(self) -> set[str]:
        return self.asked_for | set(self.only or ())


def plan_services(
    wishes: ServiceWishes,
    size: Size,
    earlier: ClusterPlan | None,
    available: Collection[str],
    free_ports: Callable[[list[int]], Iterator[int]],
) -> tuple[ServicePlan, ...]:
    """The services that the cluster has. `available` are the installed ones; `free_ports` is that of `plan_of`. Raises
    KasparError.
    """
    left_out = wishes.left_out(earlier)
    before = {service.name: service for service in (() if earlier is None else earlier.services)}
    names = [name for name in SERVICES if name in available and name not in left_out]
    taken = {port: f"broker {number}" for number, port in enumerate(size.broker_ports, 1)}
    services = []
    for name in names:
        service = _plan(name, wishes.ports.get(name), before.get(name), free_ports, taken)
        title = f"the {SERVICES[name].title}"
        if service.port in taken:
            raise KasparError(
                f"{title} cannot use port {service.port}, which {taken[service.port]} uses: choose another "
                f"--{name}-port"
            )
        taken[service.port] = title
        services.append(service)
    return tuple(services)


def _plan(
    name: str,
    port: int | None,
    before: ServicePlan | None,
    free_ports: Callable[[list[int]], Iterator[int]],
    taken: Collection[int],
) -> ServicePlan:
    if port:
        return ServicePlan(name, port)
    default = SERVICES[name].port
    if port is None and before is not None and not before.any_port and before.port != default:
        return before
    # No particular port was requested, and another cluster or Confluent's own registry may use the default.
    if before is not None and before.any_port:
        wanted = [before.port]
    else:
        wanted = [] if port == 0 else [default]
    chosen = next(each for each in free_ports(wanted) if each not in taken)
    return ServicePlan(name, chosen, any_port=chosen != default)
