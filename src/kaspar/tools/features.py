"""kafka-features: shows and changes the levels of a cluster's features."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from kaspar.base.errors import Refused
from kaspar.client.admin.features import (
    FeatureMetadata,
    FeatureUpdate,
    UpgradeType,
    describe_features,
    update_features,
)
from kaspar.client.admin.session import Admin
from kaspar.tools.argparse4j import Argparse4jOptions, to_integer
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import FAILED, CommandFailed, open_admin, run
from kaspar.tools.feature_levels import (
    METADATA_VERSION,
    add_local_commands,
    level_text,
    parse_level,
    parse_release,
    run_local_command,
)
from kaspar.tools.kafka_errors import message_of, report

_LEVEL_WIDTH: Final = 16


class _Options(Argparse4jOptions):
    def report(self, sentence: str) -> NoReturn:
        print(f"Command line error: {sentence}. Type --help for help.", file=sys.stderr)
        sys.exit(FAILED)


def command_options() -> _Options:
    options = _Options(
        "kafka-features",
        description="Show the levels of a cluster's features, and raise, lower or disable them.",
        epilog="Example: kafka-features --bootstrap-server localhost:9092 describe",
    )
    servers = options.add_mutually_exclusive_group()
    servers.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    servers.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers to connect to")
    add_command_config(options)
    commands = options.add_subparsers(dest="command", required=True)
    describe = commands.add_parser(
        "describe",
        help="show the supported and the finalized levels",
        description="Show the levels that a node supports, and those that are finalized for the cluster.",
    )
    describe.add_argument("--node-id", type=to_integer, metavar="ID", help="the node to ask (default: any)")
    upgrade = commands.add_parser("upgrade", help="raise levels", description="Raise the levels of features.")
    downgrade = commands.add_parser("downgrade", help="lower levels", description="Lower the levels of features.")
    disable = commands.add_parser("disable", help="lower levels to 0", description="Lower features to level 0.")
    for command in (upgrade, downgrade):
        command.add_argument("--metadata", metavar="RELEASE", help="deprecated: the level of metadata.version")
        command.add_argument(
            "--release-version", metavar="RELEASE", help="set all features to their levels in this release: 4.3"
        )
    for command in (upgrade, downgrade, disable):
        form = "FEATURE" if command is disable else "FEATURE=LEVEL"
        command.add_argument("--feature", action="append", metavar=form, help="a feature; may be repeated")
        command.add_argument("--dry-run", action="store_true", help="only show whether it can be done")
    for command in (downgrade, disable):
        command.add_argument("--unsafe", action="store_true", help="also if metadata may be lost")
    add_local_commands(commands)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse_args(argv)
    return run(lambda: _run(parser, options), report)


def _run(parser: _Options, options: argparse.Namespace) -> None:
    if run_local_command(options):
        return
    servers = options.bootstrap_server or options.bootstrap_controller
    if servers is None:
        parser.report("You must specify either --bootstrap-controller or --bootstrap-server.")
    with open_admin(
        servers,
        options.command_config,
        client_id="features-tool",
        via_controllers=options.bootstrap_server is None,
    ) as admin:
        if options.command == "describe":
            for line in described(describe_features(admin, node_id=options.node_id)):
                print(line)
        else:
            _update(admin, options)


def described(features: FeatureMetadata) -> list[str]:
    lines = []
    for name, supported in sorted(features.supported.items()):
        low, high, level = (
            f"{level_text(name, each):<{_LEVEL_WIDTH}}"
            for each in (supported.first, supported.last, features.finalized.get(name, 0))
        )
        epoch = "-" if features.epoch is None else features.epoch
        lines.append(
            f"Feature: {name:<41} SupportedMinVersion: {low} SupportedMaxVersion: {high} "
            f"FinalizedVersionLevel: {level} Epoch: {epoch}"
        )
    return lines


def _update(admin: Admin, options: argparse.Namespace) -> None:
    updates = wanted_updates(options)
    if not updates:
        raise CommandFailed(f"You must specify at least one feature to {options.command}")
    results = update_features(admin, updates, validate_only=options.dry_run)
    for name, refused in sorted(results.items()):
        print(_result(options, name, updates[name].level, refused))
    if failed := sum(refused is not None for refused in results.values()):
        raise CommandFailed(f"{failed} out of {len(updates)} operation(s) failed.")


def _result(options: argparse.Namespace, name: str, level: int, refused: Refused | None) -> str:
    verb, is_disabled = options.command, options.command == "disable"
    if refused is not None:
        what = f"disable {name}" if is_disabled else f"{verb} {name} to {level}"
        return f"{'Can' if options.dry_run else 'Could'} not {what}. {message_of(refused)}"
    done = "disabled" if is_disabled else f"{verb}d to {level}"
    return f"{name} {'can be' if options.dry_run else 'was'} {done}."


def wanted_updates(options: argparse.Namespace) -> dict[str, FeatureUpdate]:
    kind = UpgradeType.UPGRADE
    if options.command != "upgrade":
        kind = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    features = options.feature or []
    if options.command == "disable":
        return _once([(name, 0) for name in features], kind)
    if options.release_version is not None:
        if options.metadata is not None or features:
            raise CommandFailed("Can not specify `release-version` with other feature flags.")
        release = parse_release(options.release_version)
        return _once([*release.levels().items(), (METADATA_VERSION, release.level)], kind)
    levels = []
    if options.metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        levels.append((METADATA_VERSION, parse_release(options.metadata).level))
    return _once([*levels, *map(parse_level, features)], kind)


def _once(levels: Sequence[tuple[str, int]], kind: UpgradeType) -> dict[str, FeatureUpdate]:
    updates: dict[str, FeatureUpdate] = {}
    for name, level in levels:
        if name in updates:
            raise CommandFailed(f"Feature {name} was specified more than once.")
        updates[name] = FeatureUpdate(level, kind)
    return updates


if __name__ == "__main__":
    sys.exit(main())
