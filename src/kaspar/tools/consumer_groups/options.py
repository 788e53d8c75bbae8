"""The options of kafka-consumer-groups, and which of them can be combined."""

import argparse
import sys
from typing import Final

from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, is_given
from kaspar.tools.java_numbers import parse_long

ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS: Final = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
_ONLY_WITH: Final = {
    "members": ("describe",),
    "offsets": ("describe",),
    "verbose": ("describe",),
    "state": ("describe", "list"),
    "type": ("list",),
}
DEFAULT_TIMEOUT_MS: Final = 30_000


class WrongOption(CommandFailed):
    """A wrong option that is only noticed when the command runs."""


class ConsumerGroupsOptions(KafkaOptions):
    def __init__(self) -> None:
        super().__init__(
            "kafka-consumer-groups",
            "List and describe consumer groups, delete them or some of their offsets, and reset their offsets.",
            example="kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing",
        )
        self._add_connection()
        self._add_actions()
        self._add_reset()

    def _add_connection(self) -> None:
        self.add_argument(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="brokers to connect to. REQUIRED, except with --validate-regex",
        )
        add_command_config(self)
        self.add_argument(
            "--timeout",
            metavar="MS",
            help=f"how long each step may take, in milliseconds (default: {DEFAULT_TIMEOUT_MS})",
        )

    def _add_actions(self) -> None:
        self.add_argument("--list", action="store_true", help="list the groups")
        self.add_argument(
            "--describe",
            action="store_true",
            help="show groups: their offsets and lags, or what --members or --state asks for",
        )
        self.add_argument("--delete", action="store_true", help="delete groups that have no members")
        self.add_argument(
            "--delete-offsets", action="store_true", help="delete the offsets that a group committed for topics"
        )
        self.add_argument(
            "--reset-offsets",
            action="store_true",
            help="move the offsets of groups that have no members. Say which (--topic, --all-topics or --from-file), "
            "to where (--to-..., --by-duration, --shift-by or --from-file), and --dry-run or --execute",
        )
        self.add_argument("--validate-regex", metavar="REGEX", help="check a pattern of topics, in RE2's syntax")
        self.add_argument(
            "--group", action="append", default=[], metavar="GROUP", help="the group to act on; may be repeated"
        )
        self.add_argument("--all-groups", action="store_true", help="act on all consumer groups")
        self.add_argument(
            "--members", action="store_true", help="with --describe: the members, and how many partitions they have"
        )
        self.add_argument(
            "--offsets", action="store_true", help="with --describe: the offsets and lags of partitions (the default)"
        )
        self.add_argument(
            "--state",
            nargs="?",
            const="",
            metavar="STATES",
            help="with --describe: the state and the coordinator. With --list: the states, or only the groups in "
            "one of these, separated by commas: stable,empty",
        )
        self.add_argument(
            "--type",
            nargs="?",
            const="",
            metavar="TYPES",
            help="with --list: the types, or only the groups of one of these, separated by commas: classic,consumer",
        )
        self.add_argument(
            "--verbose", action="store_true", help="with --describe: also epochs, and the partitions of members"
        )

    def _add_reset(self) -> None:
        self.add_argument(
            "--topic",
            action="append",
            default=[],
            metavar="TOPIC",
            help="a topic whose offsets are reset or deleted, or some of its partitions: orders:0,1; may be repeated",
        )
        self.add_argument(
            "--all-topics", action="store_true", help="reset the offsets of all topics that the group has committed"
        )
        self.add_argument("--to-earliest", action="store_true", help="reset to the earliest offsets")
        self.add_argument("--to-latest", action="store_true", help="reset to the latest offsets")
        self.add_argument("--to-current", action="store_true", help="reset to the committed offsets, to export them")
        self.add_argument("--to-offset", metavar="OFFSET", help="reset to this offset")
        self.add_argument("--shift-by", metavar="N", help="move the committed offsets by N, which may be negative")
        self.add_argument("--to-datetime", metavar="TIME", help="reset to this time: YYYY-MM-DDThh:mm:ss.sss")
        self.add_argument("--by-duration", metavar="DURATION", help="reset to so long ago: PnDTnHnMnS")
        self.add_argument(
            "--from-file", metavar="FILE", help="reset to the offsets in a CSV file, as --export prints them"
        )
        self.add_argument("--dry-run", action="store_true", help="only show the offsets (the default)")
        self.add_argument("--execute", action="store_true", help="reset the offsets")
        self.add_argument(
            "--export", action="store_true", help="print the offsets as CSV: TOPIC,PARTITION,OFFSET, for --from-file"
        )

    # --- which go together --------------------------------------------------------------------------------------------

    def check(self, options: argparse.Namespace) -> None:
        """Fail if the options do not fit together. The checks are in Kafka's order, so that the same one fails
        first.
        """
        self._check_available(options)
        if not is_given(options, "validate-regex"):
            self.require(options, "bootstrap-server")
        if options.describe:
            self._check_describe(options)
        if options.delete:
            self._require_groups(options, "delete")
            if options.topic:
                self.fail("The consumer does not support topic-specific offset deletion from a consumer group.")
        if options.delete_offsets and not (options.group and options.topic):
            self.fail("Option [delete-offsets] takes the following options: [group], [topic]")
        if options.reset_offsets:
            self._check_reset(options)
        self.exclude(options, "group", ["all-groups", "list"])
        self.exclude(options, "topic", ["list", "describe"])
        if sum(is_given(options, action) for action in ACTIONS) != 1:
            self.fail(f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}")

    def _check_available(self, options: argparse.Namespace) -> None:
        for name, actions in _ONLY_WITH.items():
            if is_given(options, name) and not any(is_given(options, action) for action in actions):
                self.fail(f"Option(s) [{name}] are unavailable given other options on the command line")

    def _check_describe(self, options: argparse.Namespace) -> None:
        self._require_groups(options, "describe")
        if sum(is_given(options, name) for name in ("members", "offsets", "state")) > 1:
            self.fail("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if options.state:
            self.fail("Option [describe] does not take a value for [state]")

    def _check_reset(self, options: argparse.Namespace) -> None:
        if options.dry_run and options.execute:
            self.fail("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
        if not options.dry_run and not options.execute:
            print(
                "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command "
                "will require either --dry-run or --execute to be specified. You should add the --dry-run option "
                "explicitly if you are scripting this command and want to keep the current default behavior without "
                "prompting.",
                file=sys.stderr,
            )
        self._require_groups(options, "reset-offsets")
        for scenario in SCENARIOS:
            self.exclude(options, scenario, [each for each in SCENARIOS if each != scenario])

    def _require_groups(self, options: argparse.Namespace, action: str) -> None:
        if not options.group and not options.all_groups:
            self.fail(f"Option [{action}] takes one of these options: [group], [all-groups]")


def number(options: argparse.Namespace, name: str) -> int:
    """The number given by this option. Like in Kafka's command, it is only parsed when it is needed."""
    text = getattr(options, name.replace("-", "_"))
    try:
        return parse_long(text)
    except ValueError:
        raise CommandFailed(f"Cannot parse argument '{text}' of option {name}") from None


def scenario_is_missing() -> str:
    names = ", ".join(f"[{name}]" for name in SCENARIOS)
    return f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]"
