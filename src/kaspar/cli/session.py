"""The session of a command, and the shared options for the connection to a cluster and for the output.

The client's settings are Java client properties, in this order of precedence: -b, -X, the file of --config, the profile
(--profile, $KASPAR_PROFILE, or the one in use). If servers are given, they are another cluster than that of the profile
in use: its settings are ignored, unless --profile is given.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from kaspar.base.errors import KasparError
from kaspar.cli.failures import NoBroker, WrongUsage
from kaspar.cli.output import Format, Output
from kaspar.cli.profiles import BOOTSTRAP_SERVERS, Profiles, default_folder, read_properties_file

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.security.client import ClientSecurity

DEFAULT_SERVERS: Final = "localhost:9092"
OF_REGISTRY: Final = "schema.registry."
"""The prefix of properties for a schema registry, not for brokers."""
REQUEST_TIMEOUT_S: Final = 15.0
API_TIMEOUT_S: Final = 60.0
PATIENCE_S: Final = 2.0
"""How long a cluster may be unreachable: within this time, other brokers take over from one that is restarted."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The options that select the cluster."""

    servers: str | None = None
    profile: str | None = None
    config_file: Path | None = None
    settings: Sequence[str] = ()
    environment_servers: str | None = None
    environment_profile: str | None = None
    """Used only if no option names a cluster: otherwise the passwords of one cluster would be sent to the servers of
    another."""
    profiles: Profiles = field(default_factory=lambda: Profiles(default_folder()))

    def properties(self) -> dict[str, str]:
        """The effective Java client properties, including bootstrap.servers."""
        given = {} if self.config_file is None else read_properties_file(self.config_file)
        given |= pairs(self.settings, "-X")
        if self.servers is not None:
            given[BOOTSTRAP_SERVERS] = self.servers
        if not given.get(BOOTSTRAP_SERVERS, DEFAULT_SERVERS).strip():
            raise WrongUsage("-b HOST:PORT is empty")
        name = self.profile
        if name is None and BOOTSTRAP_SERVERS not in given:
            name = self.environment_profile
            if self.environment_servers is not None:
                given[BOOTSTRAP_SERVERS] = self.environment_servers
            elif name is None:
                name = self.profiles.current()
        of_profile = {} if name is None else self.profiles.read(name)
        return {BOOTSTRAP_SERVERS: DEFAULT_SERVERS} | of_profile | given


class Session:
    def __init__(self, choice: ClusterChoice, output: Output | None = None, *, patience_s: float = PATIENCE_S) -> None:
        self.output = output or Output()
        self._choice = choice
        self._patience_s = patience_s

    @functools.cached_property
    def properties(self) -> dict[str, str]:
        return self._choice.properties()

    @property
    def servers(self) -> str:
        return self.properties[BOOTSTRAP_SERVERS]

    @contextlib.contextmanager
    def admin(self) -> "Iterator[Admin]":
        """An Admin for the calls of kaspar.client.admin. Raises NoBroker if no broker responds."""
        from kaspar.client.admin.session import Admin

        api_timeout_s = self._seconds("default.api.timeout.ms", API_TIMEOUT_S)
        patience_s = api_timeout_s / 2 if "default.api.timeout.ms" in self.properties else self._patience_s
        security = self._security()
        try:
            admin = Admin(
                self.servers,
                client_id=self.properties.get("client.id", "kaspar"),
                request_timeout_s=min(self._seconds("request.timeout.ms", REQUEST_TIMEOUT_S), api_timeout_s),
                api_timeout_s=api_timeout_s,
                on_unreachable=_Patience(self.servers, patience_s),
                security=security,
            )
        except ValueError:
            raise WrongUsage(f"{self.servers} is not a list of host:port") from None
        with admin:
            try:
                yield admin
            except OSError as problem:
                if problem.filename is not None:
                    raise
                raise no_broker(self.servers, problem) from None
            except KasparError as problem:
                if security is not None and _is_handshake(problem):
                    raise NoBroker(f"{problem}: does this listener use TLS? Check security.protocol") from None
                raise

    def _security(self) -> "ClientSecurity | None":
        if "security.protocol" not in self.properties:
            return None
        from kaspar.security.client import client_security  # imported here because most commands do not need it

        return client_security(self.properties)

    def _seconds(self, name: str, default_s: float) -> float:
        try:
            return int(self.properties[name]) / 1000 if name in self.properties else default_s
        except ValueError:
            raise WrongUsage(f"{name} must be a number of milliseconds, not {self.properties[name]!r}") from None


def _is_handshake(problem: KasparError) -> bool:
    from kaspar.security.client import HandshakeFailed

    return isinstance(problem, HandshakeFailed)


class _Patience:
    """Ends a call when no broker has been reached for some time."""

    def __init__(self, servers: str, patience_s: float) -> None:
        self._servers = servers
        self._patience_s = patience_s
        self._since: float | None = None

    def __call__(self, error: OSError) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        is_final = isinstance(error, TimeoutError) or now - self._since >= self._patience_s
        if is_final:
            raise no_broker(self._servers, error)


def no_broker(servers: str, error: OSError) -> NoBroker:
    """The error for an unreachable cluster, with a possible reason."""
    import socket

    match error:
        case ConnectionRefusedError():
            return NoBroker(f"no broker responds at {servers}: is it running? 'kaspar up' starts one")
        case socket.gaierror():
            return NoBroker(f"no broker responds at {servers}: the host name cannot be resolved")
        case TimeoutError():
            return NoBroker(f"no broker responds at {servers} in time: is this a broker's port, and does it need TLS?")
        case ConnectionError():
            return NoBroker(
                f"the broker at {servers} closed the connection: if it requires TLS or authentication, pass the "
                "settings with --config FILE or --profile NAME"
            )
    return NoBroker(f"no broker responds at {servers}: {error.strerror or error}")


def pairs(settings: Sequence[str], option: str) -> dict[str, str]:
    """Parse the name=value pairs of an option."""
    values = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise WrongUsage(f"{option} {setting} is not NAME=VALUE")
        values[name.strip()] = value.strip()
    return values


_CLUSTER_OPTIONS: Final = (
    click.option(
        "-b",
        "--bootstrap-server",
        "servers",
        metavar="HOST:PORT",
        envvar="KASPAR_BOOTSTRAP_SERVER",
        help="One or more brokers of the cluster, comma-separated (default: from the profile, or localhost:9092).",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        envvar="KASPAR_PROFILE",
        shell_complete=lambda context, parameter, incomplete: [
            name for name in Profiles(default_folder()).names() if name.startswith(incomplete)
        ],
        help="A connection profile (default: the one chosen with 'kaspar profile use').",
    ),
    click.option(
        "--config",
        "--command-config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A file of Java client properties: security.protocol, sasl.*, ssl.*, request.timeout.ms.",
    ),
    click.option("-X", "settings", multiple=True, metavar="NAME=VALUE", help="One client property; may be repeated."),
)
_OUTPUT_OPTIONS: Final = (
    click.option("--json", "output_format", flag_value=Format.JSON, type=Format, help="Print JSON."),
    click.option("--yaml", "output_format", flag_value=Format.YAML, type=Format, help="Print YAML."),
    click.option("--no-headers", is_flag=True, help="Print tables without the header line."),
    click.option("--no-color", is_flag=True, help="No colours, as NO_COLOR=1 in the environment."),
)


def chosen_cluster(
    context: click.Context,
    servers: str | None,
    profile: str | None,
    config_file: Path | None,
    settings: Sequence[str],
) -> ClusterChoice:
    """The cluster chosen by the options of a command, with values from the environment kept apart."""
    are_servers_set = context.get_parameter_source("servers") is ParameterSource.ENVIRONMENT
    is_profile_set = context.get_parameter_source("profile") is ParameterSource.ENVIRONMENT
    return ClusterChoice(
        None if are_servers_set else servers,
        None if is_profile_set else profile,
        config_file,
        settings,
        environment_servers=servers if are_servers_set else None,
        environment_profile=profile if is_profile_set else None,
    )


def common_options(function: Callable[Concatenate[Session, P], R]) -> Callable[..., R]:
    """Add the connection and output options to the command, and pass their session as its first argument."""

    @functools.wraps(function)
    def with_session(
        *args: Any,
        output_format: Format | None,
        no_headers: bool,
        no_color: bool,
        servers: str | None,
        profile: str | None,
        config_file: Path | None,
        settings: Sequence[str],
        **options: Any,
    ) -> R:
        output = Output(output_format or Format.TEXT, color=not no_color, headers=not no_headers)
        choice = chosen_cluster(click.get_current_context(), servers, profile, config_file, settings)
        return function(Session(choice, output), *args, **options)

    return _with(with_session, (*_CLUSTER_OPTIONS, *_OUTPUT_OPTIONS))


def cluster_options(function: Callable[Concatenate[Session, P], R]) -> Callable[..., R]:
    """Add only the connection options, for commands with a single output format."""

    @functools.wraps(function)
    def with_session(
        *args: Any,
        servers: str | None,
        profile: str | None,
        config_file: Path | None,
        settings: Sequence[str],
        **options: Any,
    ) -> R:
        choice = chosen_cluster(click.get_current_context(), servers, profile, config_file, settings)
        return function(Session(choice), *args, **options)

    return _with(with_session, _CLUSTER_OPTIONS)


def output_options(function: Callable[Concatenate[Output, P], R]) -> Callable[..., R]:
    """Add only the output options, for commands that do not connect to a cluster. The first argument is the Output."""

    @functools.wraps(function)
    def with_output(*args: Any, output_format: Format | None, no_headers: bool, no_color: bool, **options: Any) -> R:
        output = Output(output_format or Format.TEXT, color=not no_color, headers=not no_headers)
        return function(output, *args, **options)

    return _with(with_output, _OUTPUT_OPTIONS)


def _with(function: Callable[..., R], options: Sequence[Callable[..., Any]]) -> Callable[..., R]:
    for option in reversed(options):
        function = option(function)
    return function
