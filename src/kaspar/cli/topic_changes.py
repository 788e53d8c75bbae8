"""The commands of `kaspar topic` that change topics."""

from collections.abc import Sequence
from typing import Final

import click

from kaspar.base.errors import ErrorCode, Refused
from kaspar.cli.asking import confirm, in_batches, with_progress, yes_option
from kaspar.cli.command import Command
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import WrongUsage
from kaspar.cli.output import Done
from kaspar.cli.parameters import PARTITIONS
from kaspar.cli.positions import find_offsets
from kaspar.cli.session import Session, common_options, pairs
from kaspar.cli.topic_lookup import existing_topics, partitions_of

TOPICS_PER_REQUEST: Final = 50
_NAMES: Final = click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
_NAME: Final = click.argument("name", metavar="TOPIC", shell_complete=complete_topics)


@click.command(
    "create",
    cls=Command,
    epilog="""\
examples:
  kaspar topic create orders
  kaspar topic create orders payments --partitions 6 --replicas 3
  kaspar topic create users --set cleanup.policy=compact --if-not-exists
""",
)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="Number of partitions (default: the brokers' default).",
)
@click.option(
    "-r", "--replicas", type=click.IntRange(1), metavar="N", help="Number of replicas (default: the brokers' default)."
)
@click.option("-c", "--set", "configs", multiple=True, metavar="NAME=VALUE", help="A topic setting; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that already exist.")
@common_options
def create(
    session: Session,
    names: Sequence[str],
    partitions: int | None,
    replicas: int | None,
    configs: Sequence[str],
    if_not_exists: bool,
) -> int:
    """Create topics."""
    from kaspar.client.admin.creation import BROKERS_DEFAULT, NewTopic, create_topics

    settings = pairs(configs, "--set")
    results = []
    with session.admin() as admin:
        for together in with_progress(in_batches(dict.fromkeys(names), TOPICS_PER_REQUEST), "Creating"):
            new = [
                NewTopic(name, partitions or BROKERS_DEFAULT, replicas or BROKERS_DEFAULT, settings)
                for name in together
            ]
            for name, result in create_topics(admin, new).items():
                results.append(_created(name, result, if_not_exists=if_not_exists))
    return session.output.results(results)


def _created(name: str, result: object, *, if_not_exists: bool) -> Done:
    if not isinstance(result, Refused):
        return Done(f"topic {name}", {"topic": name}, "created")
    if result.code is ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
        return Done(f"topic {name}", {"topic": name}, "exists")
    return Done(f"topic {name}", {"topic": name}, problem=result)


@click.command(
    "delete",
    cls=Command,
    epilog="""\
examples:
  kaspar topic delete orders
  kaspar topic delete orders payments --yes --if-exists
""",
)
@_NAMES
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@yes_option
@common_options
def delete(session: Session, names: Sequence[str], if_exists: bool, yes: bool) -> int:
    """Delete topics and all their records."""
    from kaspar.client.admin.deletion import delete_topics

    wanted = list(dict.fromkeys(names))
    confirm(f"Delete {', '.join(wanted)} with all records?", yes=yes)
    results = []
    with session.admin() as admin:
        for together in with_progress(in_batches(wanted, TOPICS_PER_REQUEST), "Deleting"):
            for name, refused in delete_topics(admin, together).items():
                is_gone = refused is not None and refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if is_gone and if_exists:
                    results.append(Done(f"topic {name}", {"topic": name}, "does not exist"))
                else:
                    results.append(Done(f"topic {name}", {"topic": name}, "deleted", refused))
    return session.output.results(results)


@click.command(
    "alter",
    cls=Command,
    epilog="""\
examples:
  kaspar topic alter orders --set retention.ms=3600000 --set cleanup.policy=compact,delete
  kaspar topic alter orders --unset retention.ms
  kaspar config list topic/orders                   all its settings
""",
)
@_NAMES
@click.option("-c", "--set", "new", multiple=True, metavar="NAME=VALUE", help="Change a setting; may be repeated.")
@click.option("--unset", "old", multiple=True, metavar="NAME", help="Reset a setting to its default; may be repeated.")
@common_options
def alter(session: Session, names: Sequence[str], new: Sequence[str], old: Sequence[str]) -> int:
    """Change the settings of topics."""
    from kaspar.client.admin.configs import (
        ConfigChange,
        ConfigOperation,
        ConfigResource,
        ResourceType,
        incremental_alter_configs,
    )

    changes = [ConfigChange(name, ConfigOperation.SET, value) for name, value in pairs(new, "--set").items()]
    changes += [ConfigChange(name, ConfigOperation.DELETE) for name in old]
    if not changes:
        raise WrongUsage("--set NAME=VALUE or --unset NAME is required")
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(names)}
    with session.admin() as admin:
        refused = incremental_alter_configs(admin, dict.fromkeys(resources.values(), changes))
    return session.output.results(
        [
            Done(f"topic {name}", {"topic": name}, "changed", refused.get(resource))
            for name, resource in resources.items()
        ]
    )


@click.command(
    "add-partitions",
    cls=Command,
    epilog="""\
examples:
  kaspar topic add-partitions orders --num 2        two more
  kaspar topic add-partitions orders --to 12        twelve in total
""",
)
@_NAMES
@click.option("-n", "--num", type=click.IntRange(1), metavar="N", help="Number of partitions to add.")
@click.option("--to", "total", type=click.IntRange(1), metavar="N", help="Total number of partitions.")
@common_options
def add_partitions(session: Session, names: Sequence[str], num: int | None, total: int | None) -> int:
    """Add partitions to topics. Records with the same key may go to another partition from then on."""
    from kaspar.client.admin.partitions import NewPartitions, create_partitions

    if (num is None) is (total is None):
        raise WrongUsage("either --num N or --to N is required")
    with session.admin() as admin:
        totals = {
            topic.name: NewPartitions(total or len(topic.partitions) + (num or 0))
            for topic in existing_topics(admin, names)
        }
        refused = create_partitions(admin, totals)
    return session.output.results(
        [
            Done(f"topic {name}", {"topic": name}, f"{new.total} partitions", refused[name])
            for name, new in totals.items()
        ]
    )


@click.command(
    "trim",
    cls=Command,
    epilog="""\
examples:
  kaspar topic trim orders --before 1000 --partitions 0,1
  kaspar topic trim orders --before '7 days ago'
  kaspar topic trim orders --before end             all current records
""",
)
@_NAME
@click.option(
    "--before",
    required=True,
    metavar="WHERE",
    help="Delete records before this position: an offset, a time such as '7 days ago', or 'end'.",
)
@click.option("-p", "--partitions", metavar="N,N-M", type=PARTITIONS, help="Only these partitions (default: all).")
@yes_option
@common_options
def trim(session: Session, name: str, before: str, partitions: Sequence[int] | None, yes: bool) -> int:
    """Delete the first records of a topic's partitions."""
    from kaspar.client.admin.records import delete_records

    confirm(f"Delete records of {name}?", yes=yes)
    with session.admin() as admin:
        (topic,) = existing_topics(admin, [name])
        results = delete_records(admin, find_offsets(admin, partitions_of(topic, partitions), before))
    return session.output.results(
        [
            Done(
                str(where),
                {"topic": where.topic, "partition": where.partition},
                "trimmed",
                result if isinstance(result, Refused) else None,
            )
            for where, result in sorted(results.items())
        ]
    )
