"""The list of topics where a broker has many partitions: their sizes are not asked for by name."""

from collections.abc import Callable

import httpx

from kaspar.client.admin.session import Admin
from kaspar.console.topics.listing import read_topics
from kaspar.console.topics.sizes import partition_sizes

MANY = 1_001


def test_many_partitions_have_a_size_and_can_be_sorted_by_it(
    api: httpx.Client, admin: Admin, new_topic: Callable[..., str]
) -> None:
    small, large = new_topic(), new_topic(MANY)
    topics = read_topics(admin).by_name
    sizes = partition_sizes(admin, [topics[large]])
    assert len(sizes) == MANY
    assert min(sizes.values()) > 0
    page = api.get("/topics", params={"search": "orders-", "sort": "size", "descending": "true", "limit": 500}).json()
    found = {row["name"]: row["size"] for row in page["rows"]}
    assert found[large] == sum(sizes.values())
    assert found[small] > 0
    assert list(found.values()) == sorted(found.values(), reverse=True)
