"""`kaspar metadata adopt FILE`: takes over the folder of a stopped Apache Kafka node."""

import argparse
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from kaspar.config import BrokerConfig
    from kaspar.metadata import ClusterImage
    from kaspar.metadata.kraft.adopting import Adoption
    from kaspar.metadata.kraft.plan import AdoptionPlan

EXAMPLES: Final = """\
examples:
  kaspar metadata adopt server.properties --dry-run
  kaspar metadata adopt server.properties --yes        even if something is not taken over
  kaspar metadata adopt server.properties --undo       before a broker is started there

exit codes: 0 if all is done, 1 if it is refused or was interrupted; run it again, and it continues
"""


def add_adopt(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    adopt = actions.add_parser(
        "adopt",
        help="take over the data of a stopped Apache Kafka node",
        description="Take over, in place, the log directories of an Apache Kafka 4 node that is broker and sole "
        "controller (KRaft) and is stopped. FILE is its properties file. What cannot be taken over is listed, and "
        "then nothing is changed without --yes. No record is copied or changed.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    how = adopt.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="check and list everything, and change nothing")
    how.add_argument("--yes", action="store_true", help="adopt even if something is not taken over")
    how.add_argument("--undo", action="store_true", help="give the folder back to Kafka, if no broker has used it")
    return adopt


async def run_adopt(arguments: argparse.Namespace, config: "BrokerConfig") -> None:
    from kaspar.metadata.kraft.adopting import Adoption

    try:
        await _run(Adoption(config), arguments)
    except OSError as problem:
        raise KasparError(f"{problem.filename} cannot be used: {problem.strerror}") from None


async def _run(adoption: "Adoption", arguments: argparse.Namespace) -> None:
    with adoption.locked():
        if arguments.undo:
            await adoption.undo()
            print(f"{adoption.metadata_log} is Kafka's again, as it was: start Kafka.")
        elif await adoption.is_done():
            print("The folder was adopted before: start the broker.")
        else:
            await _adopt(adoption, arguments)


async def _adopt(adoption: "Adoption", arguments: argparse.Namespace) -> None:
    plan = adoption.plan()
    print(f"Found {_summary(plan.image)}.")
    _print_list("To know:", plan.notes)
    _print_list("Not taken over:", plan.losses)
    _print_list("Not possible:", plan.obstacles)
    if plan.obstacles:
        raise KasparError("the folder cannot be adopted, and nothing was changed")
    if arguments.dry_run:
        print("It can be adopted. Nothing was changed.")
        return
    if plan.losses and not arguments.yes:
        raise KasparError("nothing was changed. To adopt the folder without these, add --yes")
    await _carry_out(adoption, plan, arguments)


async def _carry_out(adoption: "Adoption", plan: "AdoptionPlan", arguments: argparse.Namespace) -> None:
    await adoption.carry_out(plan)
    print(f"Adopted. Start the broker: kaspar broker {arguments.file}")
    print(
        "Do not start Kafka on this folder any more. As long as the broker has not been started, --undo gives it back."
    )


def _print_list(title: str, lines: tuple[str, ...]) -> None:
    if lines:
        print(title)
        for line in lines:
            print(f"  - {line}")


def _summary(image: "ClusterImage") -> str:
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    settings = sum(
        len(values)
        for kind in (image.broker_configs, image.group_configs, image.client_metrics_configs)
        for values in kind.values()
    ) + sum(len(topic.configs) for topic in image.topics.values())
    topics = f"{counted(len(image.topics), 'topic')} with {counted(partitions, 'partition')}"
    return f"cluster {image.cluster_id}: {topics}, {counted(settings, 'setting')}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
