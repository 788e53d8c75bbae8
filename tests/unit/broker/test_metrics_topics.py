"""BrokerTopicMetrics: all topics are the sum of each, and the sum never goes back."""

from kaspar.broker.metrics import BrokerTopicMetrics, TopicMetrics
from kaspar.broker.metrics.topics import TOPIC_COUNTERS


def test_every_counter_has_an_attribute_and_starts_at_zero() -> None:
    metrics = TopicMetrics()
    assert {getattr(metrics, counter) for counter in TOPIC_COUNTERS} == {0}
    assert set(TopicMetrics.__annotations__) == set(TOPIC_COUNTERS)


def test_all_topics_are_summed() -> None:
    topics = BrokerTopicMetrics()
    topics.of("a").bytes_in += 10
    topics.of("b").bytes_in += 5
    each, every = topics.read()
    assert {name: metrics.bytes_in for name, metrics in each} == {"a": 10, "b": 5}
    assert every.bytes_in == 15


def test_one_topic_has_one_object() -> None:
    topics = BrokerTopicMetrics()
    assert topics.of("a") is topics.of("a")


def test_a_deleted_topic_stays_in_the_sum_and_restarts_at_zero_when_recreated() -> None:
    topics = BrokerTopicMetrics()
    topics.of("a").messages_in += 7
    topics.of("b").messages_in += 1
    topics.remove("a")
    topics.remove("a")
    topics.remove("never there")
    each, every = topics.read()
    assert [name for name, _ in each] == ["b"]
    assert every.messages_in == 8
    topics.of("a").messages_in += 2
    each, every = topics.read()
    assert {name: metrics.messages_in for name, metrics in each} == {"a": 2, "b": 1}
    assert every.messages_in == 10
