"""The command: maps its options to an action, and reports failures."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.base.errors import KasparError
from kaspar.tools.command_line import open_admin, run
from kaspar.tools.consumer_groups.options import DEFAULT_TIMEOUT_MS, ConsumerGroupsOptions, WrongOption, number
from kaspar.tools.kafka_errors import exception_text


def command_options() -> ConsumerGroupsOptions:
    return ConsumerGroupsOptions()


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.check(options)
    return run(lambda: _run_or_report(parser, options), _report)


def _run_or_report(parser: ConsumerGroupsOptions, options: argparse.Namespace) -> None:
    """Like Kafka's command, succeeds even if it could not do what was requested."""
    try:
        _run(options)
    except WrongOption as problem:
        parser.fail(str(problem))
    except KasparError as problem:
        _report(problem)


def _report(problem: KasparError) -> None:
    text = exception_text(problem)
    print(f"\nError: Executing consumer group command failed due to {text}")
    print(text, file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    if options.validate_regex is not None:
        from kaspar.tools.consumer_groups.regex import validate_regex

        print(validate_regex(options.validate_regex))
        return
    timeout_ms = DEFAULT_TIMEOUT_MS if options.timeout is None else number(options, "timeout")
    with open_admin(
        options.bootstrap_server,
        options.command_config,
        client_id="consumer-groups-tool",
        api_timeout_s=timeout_ms / 1000,
    ) as admin:
        if options.list:
            from kaspar.tools.consumer_groups.listing import list_them

            list_them(admin, options)
        elif options.describe:
            from kaspar.tools.consumer_groups.describing import describe

            describe(admin, options)
        elif options.delete:
            from kaspar.tools.consumer_groups.deleting import delete

            delete(admin, options)
        elif options.delete_offsets:
            from kaspar.tools.consumer_groups.deleting import delete_offsets

            delete_offsets(admin, options)
        else:
            from kaspar.tools.consumer_groups.resetting import reset

            reset(admin, options)


if __name__ == "__main__":
    sys.exit(main())
