"""The command `kaspar`.

To add a command, create a module in this package with a click command named `command` (of the class `command.Command`,
or `command.Group` for several), and add a line to `SECTIONS`. The module is imported only when its command runs, and
imports heavy modules (clients, Spark, rich) inside functions, so that every command starts fast.

A command that connects to a cluster:

    @click.command(cls=Command, epilog="examples:\\n  kaspar example orders\\n")
    @click.argument("topic")
    @common_options                        # kaspar.cli.session: -b, --profile, --config, -X, --json, --yaml, ...
    def command(session: Session, topic: str) -> int | None:
        with session.admin() as admin:     # other clients take session.properties, Java client properties
            rows = [...]
        session.output.table([Column("name", "TOPIC")], rows)

It returns its exit code (None is 0). It raises KasparError on failure, which `main` prints; `failures` has the exit
codes, and adds advice to the message. `main` also handles Ctrl-C and closed pipes.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from kaspar import __version__
from kaspar.base.errors import KasparError
from kaspar.cli.command import Entry, LazyGroup
from kaspar.cli.failures import FAILED, INTERRUPTED, USAGE, explain
from kaspar.cli.standard_streams import prepare_standard_streams

SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Run Kaspar": {
        "up": Entry("kaspar.cli.up", "Run one broker or a cluster of brokers on this machine."),
        "status": Entry("kaspar.cli.status", "Show what 'kaspar up' runs."),
        "stop": Entry("kaspar.cli.stop", "Stop what 'kaspar up' runs."),
        "broker": Entry("kaspar.cli.broker", "Run a broker; list and describe the brokers of a cluster."),
        "registry": Entry("kaspar.cli.registry", "Run the schema registry."),
        "rest": Entry("kaspar.cli.rest", "Run the REST proxy."),
        "monitor": Entry("kaspar.cli.monitor", "Run the monitor: consumer lag, a canary, and the doctor's findings."),
        "console": Entry("kaspar.cli.console", "Run the web console."),
        "demo": Entry("kaspar.cli.demo", "Run a demo: sample events, two streams programs, the console."),
        "zookeeper": Entry("kaspar.cli.zookeeper", "Run a ZooKeeper server for the metadata of a cluster."),
    },
    "Write and read records": {
        "produce": Entry("kaspar.cli.producing.command", "Write records from lines, JSON, CSV or a template."),
        "consume": Entry("kaspar.cli.consuming.command", "Print records: follow, filter, seek by time, format."),
        "bench": Entry("kaspar.cli.bench.command", "Measure produce, consume and end-to-end performance."),
    },
    "Manage topics and groups": {
        "topic": Entry("kaspar.cli.topic", "List, create, describe, change and delete topics."),
        "group": Entry("kaspar.cli.group", "Show consumer group lag; reset offsets."),
        "config": Entry("kaspar.cli.config", "Show and change settings of topics, brokers and groups."),
        "txn": Entry("kaspar.cli.txn", "List and abort transactions; find hanging ones."),
        "log": Entry("kaspar.cli.log", "Show log sizes and dump log files."),
        "compact": Entry("kaspar.cli.compact", "Compact a topic now."),
    },
    "Manage a cluster": {
        "doctor": Entry("kaspar.cli.doctor", "Diagnose a cluster and suggest fixes."),
        "cluster": Entry("kaspar.cli.cluster", "Show a cluster's brokers, health and metadata."),
        "controller": Entry("kaspar.cli.controller", "Show the controller, or move it to another broker."),
        "metadata": Entry("kaspar.cli.metadata", "Inspect, move or import a broker's metadata."),
        "user": Entry("kaspar.cli.user", "Manage SCRAM users and their passwords."),
        "acl": Entry("kaspar.cli.acl", "Manage ACLs."),
        "quota": Entry("kaspar.cli.quota", "Manage quotas of users, clients and IP addresses."),
        "certs": Entry("kaspar.cli.certs", "Create TLS certificates: a CA, brokers, clients."),
    },
    "Run pipelines": {
        "pipeline": Entry("kaspar.cli.pipeline", "Run and supervise Spark pipelines."),
        "spark": Entry("kaspar.cli.spark", "Run a Spark cluster on this machine; end transactions left open."),
    },
    "Set up this command": {
        "profile": Entry("kaspar.cli.profile", "Manage named connection profiles."),
        "completion": Entry("kaspar.cli.completion", "Print a shell completion script."),
        "help": Entry("kaspar.cli.help", "Show the help of a command, as --help does."),
        "version": Entry("kaspar.cli.version", "Show the version, and whether the core is compiled."),
    },
}

ALIASES: Final[Mapping[str, str]] = {
    "acls": "acl",
    "configs": "config",
    "groups": "group",
    "logs": "log",
    "profiles": "profile",
    "quotas": "quota",
    "topics": "topic",
    "transaction": "txn",
    "transactions": "txn",
    "txns": "txn",
    "users": "user",
}
"""Alternative command names; help shows only the names above."""

COMPLETION_VARIABLE: Final = "_KASPAR_COMPLETE"
"""An environment variable that the scripts of `kaspar completion` set. click chooses its name."""


def _show_version(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        print(f"kaspar {__version__}")
        context.exit()


_VERSION: Final = click.Option(
    ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)

kaspar: Final = LazyGroup(
    "kaspar",
    sections=SECTIONS,
    aliases=ALIASES,
    help="A Kafka-compatible commit log. Every Kafka client works with it unchanged.",
    epilog="Try 'kaspar demo', or run 'kaspar up' and connect any Kafka client to localhost:9092.",
    params=[_VERSION],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code."""
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        return _complete(instruction)
    prepare_standard_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KasparError, OSError, UnicodeError) as problem:
        failure = explain(problem)
        print(f"kaspar: {failure.sentence}", file=sys.stderr)
        return failure.exit_code


def _run(arguments: list[str]) -> int:
    try:
        with kaspar.make_context("kaspar", arguments) as context:
            return kaspar.invoke(context) or 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        return USAGE
    except click.ClickException as problem:
        print(f"kaspar: {_sentence(problem)}", file=sys.stderr)
        return problem.exit_code


def _sentence(problem: click.ClickException) -> str:
    """click's message in the style of ours, with advice."""
    message = problem.format_message().rstrip(".")
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    help_command = f" (try '{context.command_path} --help')" if context is not None else ""
    return f"{message[:1].lower()}{message[1:]}{help_command}"


def _complete(instruction: str) -> int:
    from click.shell_completion import shell_complete

    return shell_complete(kaspar, {}, "kaspar", COMPLETION_VARIABLE, instruction)


if __name__ == "__main__":
    sys.exit(main())
