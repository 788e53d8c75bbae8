"""User actions on the page, and what the page must show then. The time between the two is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.console.contents import BATCH_RECORDS, BIG_TOPIC, Contents

_PAGE_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Visit:
    """`act` and `shown` are JavaScript, with the helpers of `page.js`."""

    name: str
    title: str
    begins_at: str
    """The address of the previous page."""
    is_ready: str
    """The condition under which the previous page is complete."""
    act: str
    shown: str


Visits = Callable[[Contents, int], Sequence[Visit]]
"""The visits of a round. Each round uses other topics, groups and offsets, because reads are shared for a second."""


def _view(name: str, title: str, shown: str, before: str = "brokers") -> Visit:
    here = {"brokers": "Brokers", "topics": "Topics"}[before]
    return Visit(
        f"view_{name or 'overview'}",
        f"{title}",
        f"#/{before}",
        f"isComplete('{here}', 'tbody tr')",
        f"click(\"nav[aria-label=Views] a[href='#/{name}']\")",
        f"isComplete('{title}', '{shown}')",
    )


def views(contents: Contents, number: int) -> Sequence[Visit]:
    """All views of the navigation."""
    rows, rows_or_none = "tbody tr", "tbody tr, p.state"
    findings = "article.finding, p.state"
    acls = "tbody tr, p.state, p.notice"  # `kaspar up` has no authorizer, which the view then reports
    return (
        _view("", "Overview", ".figures"),
        _view("brokers", "Brokers", rows, before="topics"),
        _view("doctor", "Doctor", findings),
        _view("topics", "Topics", rows),
        _view("messages", "Messages", rows),
        _view("schemas", "Schemas", rows),
        _view("groups", "Groups", rows),
        _view("transactions", "Transactions", rows_or_none),
        _view("acls", "ACLs", acls),
        _view("users", "Users", rows_or_none),
        _view("quotas", "Quotas", rows_or_none),
    )


def topics(contents: Contents, number: int) -> Sequence[Visit]:
    one = contents.topic(number * 31)
    at_list = ("#/topics", "isComplete('Topics', 'tbody tr')")
    at_topic = (f"#/topics/{one}", f"isComplete('{one}', 'tbody tr')")
    return (
        Visit(
            "topics_search",
            "search among all topics",
            *at_list,
            f"type('Search topics', '{contents.topic(number * 17 + 1)}')",
            f"rowCount() === 1 && firstRow().startsWith('{contents.topic(number * 17 + 1)}')",
        ),
        Visit("topics_next", "the next page", *at_list, "click('[aria-label=\"Next page\"]')", "firstRow() !== before"),
        Visit("topics_last", "the last page", *at_list, "click('[aria-label=\"Last page\"]')", "firstRow() !== before"),
        Visit(
            "topics_by_size",
            "sorted by size",
            "#/topics?sort=name&order=down",
            f"isComplete('Topics', 'tbody tr') && firstRow().startsWith('{contents.topic(contents.topics - 1)}')",
            "clickText('th button', 'Size')",
            f"firstRow().startsWith('{BIG_TOPIC}')",
        ),
        Visit(
            "topic",
            "one topic",
            f"#/topics?search={one}",
            f"rowCount() === 1 && firstRow().startsWith('{one}')",
            "click('tbody tr a')",
            f"isComplete('{one}', '.figures') && has('tbody tr')",
        ),
        Visit(
            "topic_consumers",
            "its consumers",
            *at_topic,
            "clickText('[role=tab]', 'Consumers')",
            f"isComplete('{one}', '[aria-label^=\"Groups that read\"], [role=tabpanel] p.state')",
        ),
        Visit(
            "topic_settings",
            "its settings",
            *at_topic,
            "clickText('[role=tab]', 'Settings')",
            f"isComplete('{one}', '[role=tabpanel]') && rowCount() > 20",
        ),
    )


def groups_and_more(contents: Contents, number: int) -> Sequence[Visit]:
    one = contents.group(number * 31)
    at_list = ("#/groups", "isComplete('Groups', 'tbody tr')")
    return (
        Visit(
            "groups_search",
            "search among all groups",
            *at_list,
            f"type('Search groups', '{contents.group(number * 17 + 1)}')",
            f"rowCount() === 1 && firstRow().startsWith('{contents.group(number * 17 + 1)}')",
        ),
        Visit("groups_next", "the next page", *at_list, "click('[aria-label=\"Next page\"]')", "firstRow() !== before"),
        Visit(
            "group",
            "one group",
            f"#/groups?search={one}",
            f"rowCount() === 1 && firstRow().startsWith('{one}')",
            "click('tbody tr a')",
            f"isComplete('{one}', '.figures') && has('tbody tr')",
        ),
        Visit(
            "broker",
            "one broker",
            "#/brokers",
            "isComplete('Brokers', 'tbody tr')",
            "click('tbody tr a')",
            "isComplete('Broker 1', '[role=tabpanel]')",
        ),
        Visit(
            "broker_log_dirs",
            "its log directories",
            "#/brokers/1",
            "isComplete('Broker 1', '[role=tabpanel]')",
            "clickText('[role=tab]', 'Log directories')",
            "isComplete('Broker 1', '[role=tabpanel]') && has('[role=tabpanel] tbody tr')",
        ),
        Visit(
            "subject",
            "one schema",
            "#/schemas",
            "isComplete('Schemas', 'tbody tr')",
            f"click('tbody tr:nth-child({1 + number % 40}) a')",
            "title() !== 'Schemas' && isComplete(title(), 'pre, code')",
        ),
    )


def messages(contents: Contents, number: int) -> Sequence[Visit]:
    last = contents.batches * BATCH_RECORDS
    middle = last // 2 + number * 12_345
    address = f"#/messages/{BIG_TOPIC}"
    at_newest = (address, f"rowCount() === {_PAGE_ROWS} && has('[aria-label=\"Offset {last - 1} of partition 0\"]')")
    ago_ms = (10 + number) * 3_600_000
    return (
        Visit(
            "messages_newest",
            "the newest records",
            f"#/topics/{BIG_TOPIC}",
            f"isComplete('{BIG_TOPIC}', 'tbody tr')",
            f"click('main a[href=\"{address}\"]')",
            at_newest[1],
        ),
        Visit(
            "messages_offset",
            "from an offset in the middle",
            *at_newest,
            f"location.hash = '{address}?at=offset:{middle}&order=asc'",
            f"rowCount() === {_PAGE_ROWS} && has('[aria-label=\"Offset {middle} of partition 0\"]')",
        ),
        Visit(
            "messages_time",
            "from a time",
            *at_newest,
            f"location.hash = '{address}?order=asc&at=time:' + (Date.now() - {ago_ms})",
            f"rowCount() === {_PAGE_ROWS} && firstRow() !== before",
        ),
        Visit(
            "messages_next",
            "the next page",
            *at_newest,
            "clickText('nav.pager button', 'Older')",
            f"rowCount() === {_PAGE_ROWS} && firstRow() !== before",
        ),
        Visit(
            "messages_filter",
            "the newest fifty of one page among five hundred, by a filter",
            *at_newest,
            f"location.hash = '{address}?filter=' + encodeURIComponent('value.page == {number % 500}')",
            f"rowCount() === {_PAGE_ROWS} && firstRow() !== before",
        ),
    )
