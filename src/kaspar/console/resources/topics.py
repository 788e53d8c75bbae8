"""Topics: listed, described, created, changed and deleted."""

from dataclasses import dataclass
from functools import partial

from kaspar.client.admin.created_topic import CreatedTopic
from kaspar.console import configs
from kaspar.console.configs import ConfigChanges, ConfigView
from kaspar.console.http.endpoint import Call, changes, reads
from kaspar.console.topics import changing
from kaspar.console.topics.changing import TopicBody, Truncated, Truncation
from kaspar.console.topics.consumers import ConsumerRow, consumers_of
from kaspar.console.topics.describing import TopicView, describe_topic, find_topic
from kaspar.console.topics.listing import (
    SortKey,
    TopicPage,
    TopicQuery,
    read_sizes,
    read_topics,
    select,
    with_figures,
)


@dataclass(frozen=True, slots=True)
class PartitionsBody:
    total: int


@reads("/api/topics")
async def topics(call: Call) -> TopicPage:
    query = TopicQuery(
        call.text("search"),
        include_internal=call.flag("internal"),
        only_trouble=call.flag("trouble"),
        sort=call.choice("sort", SortKey.NAME),
        descending=call.flag("descending"),
        offset=call.number("offset", 0),
        limit=call.limit(),
    )
    known = await call.shared("topics", read_topics)
    sizes = None
    if query.sort is SortKey.SIZE:
        sizes = await call.shared("sizes of topics", lambda admin: read_sizes(admin, known.by_name.values()))
    page = select(known, query, sizes)
    return await call.shared(("figures of topics", query), lambda admin: with_figures(admin, page, known))


@reads("/api/topics/{topic}")
async def topic(call: Call) -> TopicView:
    name = call.path["topic"]
    return await call.shared(("topic", name), partial(describe_topic, name=name))


@changes("POST", "/api/topics", action="create topic", resource="topics")
async def create(call: Call) -> CreatedTopic:
    body = await call.body(TopicBody)
    call.note(f"topic {body.name}, {body.partitions} partitions, {body.replication_factor} replicas")
    return await call.ask(partial(changing.add_topic, body=body))


@changes("DELETE", "/api/topics/{topic}", action="delete topic", resource="topic {topic}")
async def delete(call: Call) -> None:
    await call.ask(partial(changing.remove_topic, name=call.path["topic"]))


@changes("POST", "/api/topics/{topic}/partitions", action="add partitions", resource="topic {topic}")
async def partitions(call: Call) -> None:
    total = (await call.body(PartitionsBody)).total
    call.note(f"{total} in all")
    await call.ask(partial(changing.add_partitions, name=call.path["topic"], total=total))


@changes("POST", "/api/topics/{topic}/truncate", action="delete records", resource="topic {topic}")
async def truncate(call: Call) -> Truncated:
    body = await call.body(Truncation)
    before = "all records" if body.offsets is None else ", ".join(f"{n} before {o}" for n, o in body.offsets.items())
    call.note(before)
    return await call.ask(partial(changing.truncate, name=call.path["topic"], truncation=body))


@reads("/api/topics/{topic}/settings")
async def settings(call: Call) -> tuple[ConfigView, ...]:
    resource = configs.topic_resource(call.path["topic"])
    return await call.shared(("settings", resource), partial(configs.read_configs, resource=resource))


@changes("PUT", "/api/topics/{topic}/settings", action="change settings", resource="topic {topic}")
async def change_settings(call: Call) -> None:
    body = await call.body(ConfigChanges)
    call.note(str(body))
    resource = configs.topic_resource(call.path["topic"])
    await call.ask(partial(configs.change_configs, resource=resource, changes=body))


@reads("/api/topics/{topic}/groups")
async def groups(call: Call) -> list[ConsumerRow]:
    name = call.path["topic"]
    await call.shared(("permission", name), partial(find_topic, name=name))
    return consumers_of(name, call.context.monitor.lag.groups(), await call.visible_groups())


ENDPOINTS = (topics, topic, create, delete, partitions, truncate, settings, change_settings, groups)
