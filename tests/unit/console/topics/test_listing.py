"""The list of topics: searched, sorted and paged."""

from uuid import uuid4

from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.console.topics.listing import KnownTopics, SortKey, TopicQuery, select


def _topic(name: str, *partitions: PartitionDescription, is_internal: bool = False) -> TopicDescription:
    return TopicDescription(name, uuid4(), is_internal, partitions)


def _partition(number: int, *, leader: int = 1, isr: tuple[int, ...] = (1, 2)) -> PartitionDescription:
    return PartitionDescription(number, leader, 0, (1, 2), isr, ())


TOPICS = KnownTopics.of(
    [
        _topic("orders", _partition(0), _partition(1), _partition(2)),
        _topic("Clicks", _partition(0), _partition(1, isr=(1,))),
        _topic("users", _partition(0, leader=-1, isr=())),
        _topic("__consumer_offsets", _partition(0), is_internal=True),
    ]
)


def _names(query: TopicQuery, sizes: dict[str, int] | None = None) -> list[str]:
    return [row.name for row in select(TOPICS, query, sizes).rows]


def test_internal_topics_are_shown_if_they_are_asked_for() -> None:
    assert _names(TopicQuery()) == ["Clicks", "orders", "users"]
    assert "__consumer_offsets" in _names(TopicQuery(include_internal=True))
    page = select(TOPICS, TopicQuery())
    assert (page.matching, page.total, page.internal) == (3, 4, 1)


def test_a_search_is_a_part_of_the_name_in_any_case() -> None:
    assert _names(TopicQuery(search="CLI")) == ["Clicks"]
    assert _names(TopicQuery(search="nothing")) == []


def test_trouble_is_counted_and_can_be_all_that_is_shown() -> None:
    rows = {row.name: row for row in select(TOPICS, TopicQuery()).rows}
    assert (rows["Clicks"].under_replicated, rows["Clicks"].offline) == (1, 0)
    assert (rows["users"].under_replicated, rows["users"].offline) == (1, 1)
    assert _names(TopicQuery(only_trouble=True, sort=SortKey.UNDER_REPLICATED, descending=True)) == ["users", "Clicks"]


def test_topics_are_sorted_before_they_are_paged() -> None:
    by_partitions = TopicQuery(sort=SortKey.PARTITIONS, descending=True)
    assert _names(by_partitions) == ["orders", "Clicks", "users"]
    assert _names(TopicQuery(sort=SortKey.PARTITIONS, offset=1, limit=1)) == ["Clicks"]
    assert _names(TopicQuery(descending=True, limit=2)) == ["users", "orders"]
    assert _names(TopicQuery(offset=10)) == []


def test_topics_without_a_known_size_are_the_smallest() -> None:
    sizes = {"orders": 10, "users": 0}
    assert _names(TopicQuery(sort=SortKey.SIZE, descending=True), sizes) == ["orders", "users", "Clicks"]
