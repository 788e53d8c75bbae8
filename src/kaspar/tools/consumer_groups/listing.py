"""--list: the groups, with their types and states if requested."""

import argparse
from collections.abc import Collection
from typing import Final

from kaspar.client.admin.groups import GroupType, list_consumer_groups
from kaspar.client.admin.session import Admin
from kaspar.tools.consumer_groups.options import WrongOption
from kaspar.tools.consumer_groups.tables import group_list

_STATES: Final = (
    "Dead",
    "CompletingRebalance",
    "Stable",
    "Reconciling",
    "Assigning",
    "PreparingRebalance",
    "Empty",
)
_TYPES: Final = (GroupType.CONSUMER, GroupType.CLASSIC)


def list_them(admin: Admin, options: argparse.Namespace) -> None:
    if options.type is None and options.state is None:
        for group_id in consumer_group_ids(admin):
            print(group_id)
        return
    types = parse_types(options.type) if options.type else ()
    states = parse_states(options.state) if options.state else ()
    groups = list_consumer_groups(admin, states=states, types=types)
    for line in group_list(groups, with_type=options.type is not None, with_state=options.state is not None):
        print(line)


def consumer_group_ids(admin: Admin) -> list[str]:
    return [each.group_id for each in list_consumer_groups(admin)]


def group_ids_of(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The groups of --group, or all groups with --all-groups."""
    return consumer_group_ids(admin) if options.all_groups else list(dict.fromkeys(options.group))


def parse_states(text: str) -> list[str]:
    """Parse names in any case, separated by commas. Returns them as Kafka writes them."""
    return _parse(text, _STATES, f"Invalid state list '{text}'. Valid states are: {', '.join(_STATES)}")


def parse_types(text: str) -> list[GroupType]:
    names = _parse(text, _TYPES, f"Invalid types list '{text}'. Valid types are: {', '.join(_TYPES)}")
    return [GroupType(name) for name in names]


def _parse(text: str, valid: Collection[str], problem: str) -> list[str]:
    names = {name.lower(): name for name in valid}
    wanted = [each.strip().lower() for each in text.split(",")]
    if not names.keys() >= set(wanted):
        raise WrongOption(problem)
    return list(dict.fromkeys(names[each] for each in wanted))
