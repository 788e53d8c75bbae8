"""Which topics a program needs, and with how many partitions (kaspar.streams.running.topics)."""

import pytest

from kaspar.streams import StreamsBuilder, TimeWindows, Topology, TopologyError
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.topics import matching_topics, planned

CONFIG = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "b:1", "replication.factor": 2})


def counting() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value).count("counts").to_stream().to("out")
    return builder.build()


def regrouped(partitions: int | None = None) -> Topology:
    """A count behind a count, which needs a re-partition topic."""
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count("counts").to_stream()
    again = counts.select_key(lambda key, value: value).repartition(name="again", partitions=partitions)
    again.group_by_key().count("second")
    return builder.build()


def test_a_missing_source_topic_is_named() -> None:
    with pytest.raises(StreamsError, match="source topics do not exist: in"):
        planned(counting(), CONFIG, {"out": 1})


def test_a_changelog_and_a_result_have_as_many_partitions_as_the_source() -> None:
    plan = planned(counting(), CONFIG, {"in": 3})
    assert plan.partitions == {0: 3}
    assert {name: topic.partitions for name, topic in plan.new.items()} == {"out": 3, "app-counts-changelog": 3}
    assert plan.new["app-counts-changelog"].configs["cleanup.policy"] == "compact"
    assert {topic.replication_factor for topic in plan.new.values()} == {2}


def test_the_largest_source_decides() -> None:
    builder = StreamsBuilder()
    builder.stream(["small", "large"]).group_by_key().count("counts")
    assert planned(builder.build(), CONFIG, {"small": 2, "large": 5}).partitions == {0: 5}


def test_a_changelog_that_exists_decides() -> None:
    plan = planned(counting(), CONFIG, {"in": 8, "app-counts-changelog": 2})
    assert plan.partitions == {0: 2}
    assert plan.new.keys() == {"out"}


def test_changelogs_that_contradict_each_other_are_refused() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count("one")
    grouped.count("two")
    with pytest.raises(StreamsError, match="app-one-changelog has 2, app-two-changelog has 3"):
        planned(builder.build(), CONFIG, {"in": 3, "app-one-changelog": 2, "app-two-changelog": 3})


def test_a_repartition_topic_has_the_partitions_of_what_writes_to_it() -> None:
    plan = planned(regrouped(), CONFIG, {"in": 4})
    assert plan.partitions == {0: 4, 1: 4}
    assert plan.new["app-again-repartition"].partitions == 4
    assert plan.new["app-again-repartition"].configs["retention.ms"] == "-1"


def test_a_repartition_topic_has_the_partitions_that_the_program_asks_for() -> None:
    plan = planned(regrouped(partitions=6), CONFIG, {"in": 4})
    assert plan.partitions == {0: 4, 1: 6}
    assert plan.new["app-again-repartition"].partitions == 6


def test_a_dead_letter_topic_is_created_as_the_brokers_choose() -> None:
    settings = {"application.id": "app", "bootstrap.servers": "b:1", "errors.dead.letter.queue.topic.name": "dead"}
    assert planned(counting(), StreamsConfig.of(settings), {"in": 3}).new["dead"].partitions == -1


def test_a_pattern_does_not_match_topics_of_the_program_itself() -> None:
    names = ["a.one", "app-counts-changelog", "app-x-repartition", "__consumer_offsets", "app-results"]
    assert matching_topics(names, ".*", "app") == ["a.one", "app-results"]


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream(pattern="x.*").group_by_key().count("counts")
    with pytest.raises(StreamsError, match=r"No topic matches the pattern x\.\*"):
        planned(builder.build(), CONFIG, {})


def test_changelogs_are_configured_or_left_out_as_the_program_says() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count("plain")
    grouped.count("safe")
    grouped.windowed_by(TimeWindows.of_size(1000)).count("lost")
    builder.changelog("safe", {"min.insync.replicas": "2"}).changelog("lost", enabled=False)
    new = planned(builder.build(), CONFIG, {"in": 3}).new
    assert new.keys() == {"app-plain-changelog", "app-safe-changelog"}
    assert new["app-safe-changelog"].configs == {
        **new["app-plain-changelog"].configs,
        "min.insync.replicas": "2",
    }


def test_changelog_of_a_store_that_is_not_there_is_refused() -> None:
    builder = StreamsBuilder()
    builder.global_table("rates", "rates")
    with pytest.raises(TopologyError, match=r"changelog\(\) names the store rates, and there is none"):
        builder.changelog("rates").build()
    with pytest.raises(TopologyError, match="which therefore has no configuration"):
        builder.changelog("rates", {"retention.ms": "1"}, enabled=False)
