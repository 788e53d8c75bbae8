"""The options of kafka-reassign-partitions, which of them can be combined, and its exit codes."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.client.admin.session import Admin
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import (
    KafkaOptions,
    integer,
    open_admin,
    read_file,
    run,
)
from kaspar.tools.kafka_errors import exception_text
from kaspar.tools.reassign_partitions.cancelling import cancel, list_active
from kaspar.tools.reassign_partitions.executing import NO_THROTTLE, NotStarted, execute
from kaspar.tools.reassign_partitions.generating import generate
from kaspar.tools.reassign_partitions.log_dir_moves import TimedOut
from kaspar.tools.reassign_partitions.verifying import verify

CLIENT_ID: Final = "reassign-partitions-tool"
DEFAULT_TIMEOUT_MS: Final = 10_000

_NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
"""The actions, and the options that each of them requires in addition to an address."""

_ALLOWED: Final[Mapping[str, Sequence[str]]] = {
    "generate": ("bootstrap-server", "command-config", "disable-rack-aware"),
    "execute": (
        "additional",
        "bootstrap-server",
        "command-config",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("bootstrap-server", "command-config", "preserve-throttles"),
    "cancel": ("bootstrap-server", "bootstrap-controller", "command-config", "preserve-throttles", "timeout"),
    "list": ("bootstrap-server", "bootstrap-controller", "command-config"),
}


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-reassign-partitions",
        "Move topic partitions between brokers, and replicas between the log directories of a broker.",
        example="kafka-reassign-partitions --bootstrap-server localhost:9092 --execute "
        "--reassignment-json-file plan.json --throttle 50000000",
    )
    actions = options.add_argument_group("actions, of which exactly one is given")
    actions.add_argument("--generate", action="store_true", help="propose a reassignment of topics; nothing is changed")
    actions.add_argument("--execute", action="store_true", help="start the reassignment of --reassignment-json-file")
    actions.add_argument(
        "--verify",
        action="store_true",
        help="show how far the reassignment of --reassignment-json-file is, and remove its throttles when it is done",
    )
    actions.add_argument(
        "--cancel", action="store_true", help="cancel the reassignment of --reassignment-json-file where it is active"
    )
    actions.add_argument("--list", action="store_true", help="list all active reassignments")
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    options.add_argument(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="controllers of an Apache Kafka cluster to connect to instead, for --cancel and --list",
    )
    add_command_config(options)
    _add_action_options(options)
    return options


def _add_action_options(options: KafkaOptions) -> None:
    options.add_argument(
        "--reassignment-json-file",
        metavar="FILE",
        help='a JSON file: {"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2], '
        '"log_dirs": ["any", "/data"]}]}. "log_dirs" is optional: an absolute path for each replica, or "any"',
    )
    options.add_argument(
        "--topics-to-move-json-file", metavar="FILE", help='a JSON file: {"version": 1, "topics": [{"topic": "foo"}]}'
    )
    options.add_argument(
        "--broker-list", metavar="IDS", help="the brokers to which --generate moves the topics, such as 0,1,2"
    )
    options.add_argument("--disable-rack-aware", action="store_true", help="place replicas without regard to racks")
    options.add_argument(
        "--throttle",
        type=integer,
        metavar="BYTES",
        help="limit the copying between brokers to this many bytes per second, at least 1 KB/s. It can be changed with "
        "--execute --additional and the same file",
    )
    options.add_argument(
        "--replica-alter-log-dirs-throttle",
        type=integer,
        metavar="BYTES",
        help="limit the copying between the log directories of a broker to this many bytes per second",
    )
    options.add_argument(
        "--timeout",
        type=integer,
        metavar="MS",
        help=f"how long to wait until moves between log directories have begun (default: {DEFAULT_TIMEOUT_MS})",
    )
    options.add_argument(
        "--additional",
        action="store_true",
        help="start a reassignment although others are active, or change the throttle",
    )
    options.add_argument("--preserve-throttles", action="store_true", help="do not remove any throttle")
    options.add_argument(
        "--disallow-replication-factor-change",
        action="store_true",
        help="refuse a reassignment that changes the replication factor of a partition",
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    action = _check(parser, options)
    return run(lambda: _connect_and_run(action, options), _report)


def _report(problem: KasparError) -> None:
    """Errors are printed on standard output, as in Kafka's command."""
    if isinstance(problem, NotStarted | TimedOut):
        print(problem)
    else:
        print(f"Error: {exception_text(problem)}")


def _connect_and_run(action: str, options: argparse.Namespace) -> None:
    with open_admin(
        options.bootstrap_server or options.bootstrap_controller,
        options.command_config,
        client_id=CLIENT_ID,
        via_controllers=options.bootstrap_server is None,
    ) as admin:
        _run(admin, action, options)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> str:
    """Fail unless the options fit together. Returns the action."""
    given = [
        name.replace("_", "-") for name, value in vars(options).items() if value is not None and value is not False
    ]
    actions = [name for name in _NEEDED if name in given]
    if len(actions) != 1:
        choices = ", ".join(f"--{name}" for name in _NEEDED)
        parser.fail(f"Command must include exactly one action: {choices}")
    (action,) = actions
    if "bootstrap-server" in given and "bootstrap-controller" in given:
        parser.fail("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if "bootstrap-server" not in given and "bootstrap-controller" not in given:
        parser.fail("Please specify either --bootstrap-server or --bootstrap-controller")
    parser.require(options, *_NEEDED[action])
    for name in given:
        if name != action and name not in _NEEDED[action] and name not in _ALLOWED[action]:
            parser.fail(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def _run(admin: Admin, action: str, options: argparse.Namespace) -> None:
    if action == "list":
        list_active(admin)
        return
    if action == "generate":
        text = read_file(options.topics_to_move_json_file)
        generate(admin, text, options.broker_list, rack_aware=not options.disable_rack_aware)
        return
    text = read_file(options.reassignment_json_file)
    timeout_ms = DEFAULT_TIMEOUT_MS if options.timeout is None else options.timeout
    if action == "verify":
        verify(admin, text, preserve_throttles=options.preserve_throttles)
    elif action == "cancel":
        cancel(admin, text, preserve_throttles=options.preserve_throttles, timeout_ms=timeout_ms)
    else:
        execute(
            admin,
            text,
            additional=options.additional,
            replication_throttle=_or_none(options.throttle),
            log_dir_throttle=_or_none(options.replica_alter_log_dirs_throttle),
            timeout_ms=timeout_ms,
            allow_replication_factor_change=not options.disallow_replication_factor_change,
        )


def _or_none(throttle: int | None) -> int:
    return NO_THROTTLE if throttle is None else throttle


if __name__ == "__main__":
    sys.exit(main())
