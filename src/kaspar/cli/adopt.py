"""`kaspar metadata adopt FILE`: takes over the folder of a stopped Apache Kafka node."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.base.sentences import counted

if TYPE_CHECKING:
    from kaspar.config import BrokerConfig
    from kaspar.metadata import ClusterImage
    from kaspar.metadata.kraft.adopting import Adoption
    from kaspar.metadata.kraft.plan import AdoptionPlan

EXAMPLES: Final = """\
examples:
  kaspar metadata adopt server.properties --dry-run
  kaspar metadata adopt server.properties --yes        even if something cannot be imported
  kaspar metadata adopt server.properties --undo       before a broker is started there

exit codes: 0 on success, 1 if refused or interrupted; an interrupted run continues when run again
"""


@dataclass(frozen=True, slots=True)
class AdoptOptions:
    file: Path
    dry_run: bool
    yes: bool
    undo: bool


async def run_adopt(options: AdoptOptions, config: "BrokerConfig") -> None:
    from kaspar.metadata.kraft.adopting import Adoption

    try:
        await _run(Adoption(config), options)
    except OSError as problem:
        raise KasparError(f"{problem.filename} cannot be used: {problem.strerror}") from None


async def _run(adoption: "Adoption", options: AdoptOptions) -> None:
    with adoption.locked():
        if options.undo:
            await adoption.undo()
            print(f"{adoption.metadata_log} is restored for Kafka: Kafka can be started again.")
        elif await adoption.is_done():
            print("The folder is already adopted: start the broker.")
        else:
            await _adopt(adoption, options)


async def _adopt(adoption: "Adoption", options: AdoptOptions) -> None:
    plan = adoption.plan()
    print(f"Found {_summary(plan.image)}.")
    _print_list("To know:", plan.notes)
    _print_list("Not imported:", plan.losses)
    _print_list("Not possible:", plan.obstacles)
    if plan.obstacles:
        raise KasparError("the folder cannot be adopted; nothing was changed")
    if options.dry_run:
        print("The folder can be adopted. Nothing was changed.")
        return
    if plan.losses and not options.yes:
        raise KasparError("nothing was changed. To adopt the folder without these, add --yes")
    await _carry_out(adoption, plan, options)


async def _carry_out(adoption: "Adoption", plan: "AdoptionPlan", options: AdoptOptions) -> None:
    await adoption.carry_out(plan)
    print(f"Adopted. Start the broker: kaspar broker {options.file}")
    print("Do not start Kafka on this folder again. Until the broker is started, --undo restores it.")


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
