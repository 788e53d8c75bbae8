"""What Kafka's administrative commands have in common: the parsing of options, and the connection to a cluster.

The rules are those of joptsimple: `--help`, or no option at all, prints the options to standard error and ends with
exit code 1, as does any wrong option; `--version` ends with 0. Words that are not options are ignored. Error messages
about options are those of Kafka's commands.
"""

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kaspar import __version__
from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.tools.java_numbers import parse_int, parse_long

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.security.client import ClientSecurity

FAILED: Final = 1
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""

_HIGHEST_PORT: Final = 65_535
_OUTPUT_ERRORS: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of files and pipes. Connections to brokers fail with other errors."""


class CommandFailed(KasparError):
    """The command cannot do what was requested. The message is Kafka's, where Kafka has one."""


class KafkaOptions(argparse.ArgumentParser):
    """Options that are not given are None, or False for flags: the commands themselves check which ones they
    require.
    """

    def __init__(self, program: str, description: str, *, example: str, complaint: str = "") -> None:
        """`complaint` is the prefix of error messages about unknown options."""
        super().__init__(
            prog=program,
            description=description,
            epilog=f"Example: {example}",
            add_help=False,
            exit_on_error=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            usage="%(prog)s OPTIONS",
        )
        self.register("action", None, _Once)
        self.given: set[str] = set()
        self._complaint = complaint
        self.add_argument("--help", action="store_true", help="print usage information")
        self.add_argument("--version", action="store_true", help="print the version")

    def parse(self, argv: Sequence[str] | None) -> argparse.Namespace:
        words = command_words(argv)
        words = [f"-{word}" if f"-{word}" in self._option_string_actions else word for word in words]  # -list is --list
        if "--" in words:  # the end of the options
            words = words[: words.index("--")]
        self.given.clear()
        try:
            options, unknown = self.parse_known_args(words)
        except argparse.ArgumentError as problem:
            name = (problem.argument_name or "").lstrip("-")
            if problem.message.startswith("expected"):
                self.fail(f"{self._complaint}Option {name} requires an argument")
            self.fail(f"{self._complaint}{problem.message} of option {name}")
        for word in unknown:
            if word.startswith("-") and word != "-":
                self.fail(f"{self._complaint}{word.lstrip('-')} is not a recognized option")
        if options.help or not words:
            self.print_help(sys.stderr)
            sys.exit(FAILED)
        if options.version:
            print(__version__)
            sys.exit(0)
        return options

    def require(self, options: argparse.Namespace, *names: str) -> None:
        """Fail unless all of these options are given. Names are written as on the command line, without dashes."""
        for name in names:
            if not is_given(options, name):
                self.fail(f'Missing required argument "[{name}]"')

    def exclude(self, options: argparse.Namespace, name: str, others: Iterable[str]) -> None:
        """Fail if the option is given together with one of the others."""
        for other in others:
            if is_given(options, name) and is_given(options, other):
                self.fail(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def fail(self, message: str) -> NoReturn:
        """End the command because of wrong options."""
        print(f"{message}\nTry '{self.prog} --help' for the options.", file=sys.stderr)
        sys.exit(FAILED)

    def error(self, message: str) -> NoReturn:
        self.fail(message)


def command_words(argv: Sequence[str] | None) -> list[str]:
    """The given words, or else the arguments of this process. These are decoded as UTF-8 in every locale, and invalid
    bytes are replaced, as in Java."""
    return [os.fsencode(word).decode("utf-8", "replace") for word in sys.argv[1:]] if argv is None else list(argv)


class _Once(argparse._StoreAction):
    """An option with a single value may be given only once, as in joptsimple."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *values: Any) -> None:
        assert isinstance(parser, KafkaOptions)
        if self.dest in parser.given:
            name = self.option_strings[0].lstrip("-")
            parser.fail(f"Found multiple arguments for option {name}, but you asked for only one")
        parser.given.add(self.dest)
        super().__call__(parser, namespace, *values)


def is_given(options: argparse.Namespace, name: str) -> bool:
    """Whether an option without a default is given. The name has no dashes."""
    value = getattr(options, name.replace("-", "_").replace(".", "_"))
    return value is not None and value is not False and value != []  # 0 is a given value, though it equals False


def run(action: Callable[[], None], report: Callable[[KasparError], None]) -> int:
    """Run the action, and return the exit code of the command. `report` prints why it failed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # as Java does for characters that the locale lacks
    try:
        code = _attempt(action, report)
        if sys.stdout is not None:  # None if the command was started without standard output
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush when Python exits
        if problem.errno != errno.EPIPE:  # not an error: the reader, such as `head`, has exited
            print(f"The output cannot be written: {problem.strerror}", file=sys.stderr)
        return FAILED
    return code


def _attempt(action: Callable[[], None], report: Callable[[KasparError], None]) -> int:
    """Run the action, and return the exit code. Raises OSError if the output cannot be written."""
    try:
        action()
    except KasparError as problem:
        report(problem)
        return FAILED
    except OSError as problem:
        if problem.errno in _OUTPUT_ERRORS:
            raise
        report(CommandFailed(f"No broker responds: {problem.strerror or problem}"))
        return FAILED
    return 0


def integer(text: str) -> int:
    """The type of a 32-bit integer option."""
    try:
        return parse_int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Cannot parse argument '{text}'") from None


def long_integer(text: str) -> int:
    """The type of a 64-bit integer option."""
    try:
        return parse_long(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Cannot parse argument '{text}'") from None


def open_admin(
    servers: str,
    config_file: str | None = None,
    *,
    client_id: str,
    api_timeout_s: float | None = None,
    request_timeout_s: float | None = None,
    via_controllers: bool = False,
) -> "Admin":
    """A session with the cluster. Settings in the file take precedence over arguments. Raises CommandFailed.

    Nothing is sent yet. If no broker can be reached, calls are retried, and this is reported on standard error once."""
    # Imported here because help, wrong options and the console commands do not need the client.
    from kaspar.client.admin.session import API_TIMEOUT_S, REQUEST_TIMEOUT_S, Admin

    _check_servers(servers)
    settings = load_properties(config_file)
    api_timeout_s = API_TIMEOUT_S if api_timeout_s is None else max(api_timeout_s, 0.0)
    api_timeout_s = _seconds(settings, "default.api.timeout.ms", api_timeout_s)
    request_timeout_s = _seconds(settings, "request.timeout.ms", request_timeout_s or REQUEST_TIMEOUT_S)
    return Admin(
        servers,
        via_controllers=via_controllers,
        client_id=settings.get("client.id") or client_id,
        request_timeout_s=min(request_timeout_s, api_timeout_s),
        api_timeout_s=api_timeout_s,
        on_unreachable=_Unreachable(servers, api_timeout_s),
        security=_security(config_file, settings),
    )


def _check_servers(servers: str) -> None:
    """Raise CommandFailed for addresses for which retries are futile. Kafka's clients check them before they connect,
    too.
    """
    addresses = [entry.strip().rpartition(":") for entry in servers.split(",") if entry.strip()]
    for host, _, port in addresses:
        if not host or not port.isdecimal():
            raise CommandFailed(f"Invalid url in bootstrap servers: {servers} is not a list of host:port")
        if int(port) > _HIGHEST_PORT:
            raise CommandFailed(f"Invalid port in bootstrap.servers: {port}")
    if not any(_is_known(host.strip("[]")) for host, _, _ in addresses):
        raise CommandFailed(f"No resolvable bootstrap urls given in bootstrap.servers: '{servers}'")


def _is_known(host: str) -> bool:
    import socket  # not needed for help and wrong options

    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True


def _security(config_file: str | None, settings: dict[str, str]) -> "ClientSecurity | None":
    if "security.protocol" not in settings:
        return None
    from kaspar.security.client import client_security  # not needed by most commands

    try:
        return client_security(settings)
    except InvalidSetting as problem:
        raise CommandFailed(f"{config_file}: {problem}") from None


def read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise CommandFailed(f"Unable to read file {path}") from None


def load_properties(config_file: str | None) -> dict[str, str]:
    """The client properties in the file; empty without a file. Raises CommandFailed."""
    if config_file is None:
        return {}
    from kaspar.config import load_settings  # imported here because most commands run without a file

    try:
        return load_settings(Path(config_file))
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None


def _seconds(settings: dict[str, str], name: str, default_s: float) -> float:
    if name not in settings:
        return default_s
    try:
        milliseconds = parse_int(settings[name].strip())
    except ValueError:
        raise CommandFailed(
            f"Invalid value {settings[name]} for configuration {name}: Not a number of type INT"
        ) from None
    if milliseconds < 0:
        raise CommandFailed(f"Invalid value {milliseconds} for configuration {name}: Value must be at least 0")
    return milliseconds / 1000


class _Unreachable:
    """Reports once that no broker can be reached, because the command then seems to hang."""

    def __init__(self, servers: str, timeout_s: float) -> None:
        self._servers = servers
        self._timeout_s = timeout_s
        self._said = False

    def __call__(self, error: OSError) -> None:
        if not self._said:
            reason = error.strerror or str(error)
            sentence = f"No connection to {self._servers} yet ({reason}); trying for {self._timeout_s:g} s."
            print(sentence, file=sys.stderr, flush=True)
            self._said = True
