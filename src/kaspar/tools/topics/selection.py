"""The topics that an action of kafka-topics applies to."""

import argparse

from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.include_list import topic_pattern


def matching_topics(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The names of all topics, or of those of --topic."""
    names = list_topics(admin, include_internal=not options.exclude_internal)
    if options.topic is None:
        return names
    pattern = topic_pattern(options.topic)
    return [name for name in names if pattern.fullmatch(name)]


def expected_topics(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The matching topics. Raises CommandFailed if there are none, unless --if-exists is given."""
    names = matching_topics(admin, options)
    if not names and options.topic and not options.if_exists:
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return names
