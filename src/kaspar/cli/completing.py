"""Shell completion of names in the cluster. A cluster that does not respond quickly yields no completions."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from kaspar.base.errors import KasparError
from kaspar.cli.session import Session, chosen_cluster

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin

Completion = Callable[[click.Context, click.Parameter, str], list[str]]
TIMEOUTS = ("request.timeout.ms=1500", "default.api.timeout.ms=1500")


def _completed_by(names_of: "Callable[[Admin], list[str]]") -> Completion:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        given = context.params
        choice = chosen_cluster(
            context,
            given.get("servers"),
            given.get("profile"),
            given.get("config_file"),
            (*TIMEOUTS, *(given.get("settings") or ())),
        )
        with contextlib.suppress(KasparError, OSError), Session(choice).admin() as admin:
            # Shells read lines, and control characters would reach the terminal: other names are omitted.
            return [name for name in names_of(admin) if name.startswith(incomplete) and name.isprintable()]
        return []

    return complete


@_completed_by
def complete_topics(admin: "Admin") -> list[str]:
    from kaspar.client.admin.topics import list_topics

    return list_topics(admin)


@_completed_by
def complete_brokers(admin: "Admin") -> list[str]:
    from kaspar.client.admin.cluster import describe_cluster

    return [str(node.node_id) for node in describe_cluster(admin).nodes]


@_completed_by
def complete_groups(admin: "Admin") -> list[str]:
    from kaspar.client.admin.groups import list_groups

    return sorted(group.group_id for group in list_groups(admin))
