"""Creating and deleting topics and adding partitions: what is refused, in which words, and what comes of the rest."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID, LeaderEpoch
from kaspar.controller.events import (
    DONE,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    MorePartitions,
    NewTopic,
    Outcome,
    TopicDeletion,
    TopicReference,
)
from kaspar.metadata.image import PartitionImage
from kaspar.metadata.layout.topic_nodes import PARTITIONS_PER_NODE
from kaspar.metadata.store import MAX_TRANSACTION_BYTES, size_of
from tests.unit.controller.clusters import after, broker, cluster, controller, with_topic

INVALID_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
LONG_NAME = "x" * 250


def manual(*assignments: tuple[int, ...], name: str = "t") -> NewTopic:
    return NewTopic(name, assignments=tuple(enumerate(assignments)))


@pytest.mark.parametrize(
    ("topic", "code", "sentence"),
    [
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (NewTopic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
        (
            NewTopic(LONG_NAME),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: the length of '{LONG_NAME}' is longer than the max allowed length 249",
        ),
        (
            NewTopic("bad name"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            NewTopic("naïve\n"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'naïve\n' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (NewTopic("old.topic"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old.topic' already exists."),
        (
            NewTopic("old_topic"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'old_topic' collides with existing topic: old.topic",
        ),
        (
            NewTopic("__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            NewTopic("t", 0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("t", -2),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("t", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            NewTopic("t", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
            "only 2 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            NewTopic("t", configs=(("segment.bytes", "1"),)),
            ErrorCode.INVALID_CONFIG,
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (NewTopic("t", configs=(("foo", "1"),)), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
        (
            NewTopic("t", configs=(("segment.bytes", None),)),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: segment.bytes",
        ),
        (
            NewTopic("t", 1, assignments=((0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("t", -1, 1, assignments=((0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            manual((1,), (9,)),
            INVALID_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            manual((1, 1)),
            INVALID_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (manual(()), INVALID_ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
        (
            manual((1,), (1, 2)),
            INVALID_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
            "previous partitions, which have 1 replica(s).",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (2, (1,)))),
            INVALID_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (0, (1,)))),
            INVALID_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
    ],
)
def test_a_wrong_topic_is_refused_and_its_neighbours_are_made(topic: NewTopic, code: ErrorCode, sentence: str) -> None:
    image = with_topic(cluster(broker(1), broker(2)), "old.topic")
    decision = controller().decide(image, CreateTopics((NewTopic("first"), topic, NewTopic("last"))))
    first, refused, last = decision.reply
    assert (refused.name, refused.outcome, refused.topic_id) == (topic.name, Outcome(code, sentence), ZERO_UUID)
    assert first.outcome == last.outcome == DONE
    assert set(after(decision, image).topics) == {"old.topic", "first", "last"}


def test_a_topic_gets_what_was_asked_for_or_the_defaults() -> None:
    image = cluster(broker(1), broker(2))
    asked = NewTopic("asked", 3, 2, configs=(("retention.ms", "5"),))
    decision = controller(num_partitions="4").decide(image, CreateTopics((asked, NewTopic("default"))))
    created, default = decision.reply
    assert (created.num_partitions, created.replication_factor, created.configs) == (3, 2, {"retention.ms": "5"})
    assert (default.num_partitions, default.replication_factor) == (4, 1)
    changed = after(decision, image)
    topic = changed.topics["asked"]
    assert changed.topic_by_id(created.topic_id) is topic
    assert topic.configs == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert sorted(partition.replicas) == [1, 2]
        assert partition == PartitionImage(
            partition.replicas, partition.replicas, partition.replicas[0], LeaderEpoch(0), 0
        )
    assert decision.steps[-1].changed_topics == {"asked", "default"}


def test_a_manual_assignment_is_kept() -> None:
    image = cluster(broker(1), broker(2))
    decision = controller().decide(image, CreateTopics((NewTopic("t", assignments=((1, (2, 1)), (0, (1, 2)))),)))
    assert (decision.reply[0].num_partitions, decision.reply[0].replication_factor) == (2, 2)
    assert [partition.replicas for partition in after(decision, image).topics["t"].partitions] == [(1, 2), (2, 1)]


def test_validate_only_changes_nothing() -> None:
    image = cluster()
    decision = controller().decide(image, CreateTopics((NewTopic("t", 3),), validate_only=True))
    assert decision.reply[0].outcome == DONE
    assert decision.reply[0].num_partitions == 3
    assert decision.steps == ()


def test_a_name_given_twice_is_refused_once() -> None:
    image = cluster()
    decision = controller().decide(image, CreateTopics((NewTopic("a"), NewTopic("b"), NewTopic("a"))))
    assert [(topic.name, topic.outcome) for topic in decision.reply] == [
        ("b", DONE),
        ("a", Outcome(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")),
    ]


def test_names_of_one_request_do_not_collide() -> None:
    """As in Kafka, where a name collides only with topics that are there already."""
    image = cluster()
    first, second = controller().decide(image, CreateTopics((NewTopic("a.b"), NewTopic("a_b")))).reply
    assert first.outcome == second.outcome == DONE


def test_too_many_partitions_in_one_request_are_refused() -> None:
    image = cluster()
    decision = controller().decide(image, CreateTopics((NewTopic("a", 6000), NewTopic("b", 6000))))
    excessive = Outcome(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert [topic.outcome for topic in decision.reply] == [excessive, excessive]
    assert decision.steps == ()


def test_many_topics_become_several_transactions_each_within_the_limit() -> None:
    image = cluster()
    topics = tuple(NewTopic(f"topic-{number:0200}", 5, configs=(("retention.ms", "1" * 18),)) for number in range(2000))
    decision = controller().decide(image, CreateTopics(topics))
    assert len(decision.steps) > 1
    seen = 0
    for step in decision.steps:
        assert sum(map(size_of, step.operations)) < MAX_TRANSACTION_BYTES
        seen += len(step.changed_topics)
        assert len(step.image.topics) == seen
    assert seen == 2000


def test_a_topic_too_large_for_one_transaction_is_refused_and_can_be_grown_instead() -> None:
    brokers = [broker(100_000 + number) for number in range(5)]
    image = cluster(*brokers)
    (refused,) = controller().decide(image, CreateTopics((NewTopic("big", 10_000, 5),))).reply
    assert refused.outcome.error == ErrorCode.POLICY_VIOLATION
    assert "fewer partitions" in (refused.outcome.message or "")
    image = with_topic(image, "big", 4000, 5)
    for count in (7000, 10_000):
        decision = controller().decide(image, CreatePartitions((MorePartitions("big", count),)))
        assert decision.reply[0].outcome == DONE
        image = after(decision, image)
    assert len(image.topics["big"].partitions) == 10_000


def test_delete_moves_the_topic_to_the_deleted_ones_and_frees_its_name() -> None:
    image = with_topic(cluster(), "t", PARTITIONS_PER_NODE + 1)
    topic = image.topics["t"]
    decision = controller().decide(image, DeleteTopics((TopicReference("t"),)))
    (reply,) = decision.reply
    assert (reply.name, reply.topic_id, reply.outcome) == ("t", topic.topic_id, DONE)
    changed = after(decision, image)
    assert "t" not in changed.topics
    assert changed.topic_by_id(topic.topic_id) is None
    assert changed.deleted_topics[topic.topic_id].brokers == (1,)
    again = with_topic(changed, "t")
    assert again.topics["t"].topic_id != topic.topic_id


def test_delete_by_name_and_id_refuses_the_unknown_and_the_ambiguous() -> None:
    image = with_topic(with_topic(with_topic(cluster(), "a"), "b"), "c")
    ids = {name: topic.topic_id for name, topic in image.topics.items()}
    unknown_id = type(ZERO_UUID)(int=5)
    event = DeleteTopics(
        (
            TopicReference("nope"),
            TopicReference(None, unknown_id),
            TopicReference(None, ids["a"]),
            TopicReference("b"),
            TopicReference("b"),
            TopicReference("c", ids["c"]),
            TopicReference(),
        )
    )
    decision = controller().decide(image, event)
    assert [(reply.name, reply.topic_id, reply.outcome.error, reply.outcome.message) for reply in decision.reply] == [
        (
            "nope",
            ZERO_UUID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (None, unknown_id, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        ("a", ids["a"], ErrorCode.NONE, None),
        ("b", ZERO_UUID, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("c", ids["c"], ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
    ]
    assert set(after(decision, image).topics) == {"b", "c"}


def test_a_name_and_the_id_it_has_are_one_topic() -> None:
    image = with_topic(cluster(), "a")
    topic_id = image.topics["a"].topic_id
    decision = controller().decide(image, DeleteTopics((TopicReference(None, topic_id), TopicReference("a"))))
    problem = "The provided topic name maps to an ID that was already supplied."
    assert decision.reply == (TopicDeletion("a", topic_id, Outcome(ErrorCode.INVALID_REQUEST, problem)),)
    assert decision.steps == ()


def test_deletion_can_be_switched_off() -> None:
    image = with_topic(cluster(), "t")
    decision = controller(delete_topic_enable="false").decide(image, DeleteTopics((TopicReference("t"),)))
    assert decision.reply[0].outcome.error == ErrorCode.TOPIC_DELETION_DISABLED
    assert decision.steps == ()


@pytest.mark.parametrize(
    ("wanted", "code", "sentence"),
    [
        (
            MorePartitions("nope", 5),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            None,
        ),
        (MorePartitions("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            MorePartitions("t", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            MorePartitions("t", 3, ((1,), (1,))),
            INVALID_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            MorePartitions("t", 3, ((9,),)),
            INVALID_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            MorePartitions("t", 3, ((1, 2),)),
            INVALID_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with "
            "previous partitions, which have 1 replica(s).",
        ),
        (
            MorePartitions("t", 20_000),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_wrong_partition_counts_are_refused(wanted: MorePartitions, code: ErrorCode, sentence: str | None) -> None:
    image = with_topic(with_topic(cluster(broker(1), broker(2)), "t", 2), "other")
    decision = controller().decide(image, CreatePartitions((wanted, MorePartitions("other", 3))))
    refused, other = decision.reply
    assert refused.outcome == Outcome(code, sentence)
    assert other.outcome == DONE
    changed = after(decision, image)
    assert (len(changed.topics["t"].partitions), len(changed.topics["other"].partitions)) == (2, 3)


def test_more_partitions_leave_the_old_ones_as_they_are() -> None:
    image = with_topic(cluster(broker(1), broker(2)), "t", PARTITIONS_PER_NODE - 1, 2)
    old = image.topics["t"].partitions
    decision = controller().decide(image, CreatePartitions((MorePartitions("t", PARTITIONS_PER_NODE * 2 + 5),)))
    partitions = after(decision, image).topics["t"].partitions
    assert len(partitions) == PARTITIONS_PER_NODE * 2 + 5
    assert partitions[: len(old)] == old
    assert {len(partition.replicas) for partition in partitions} == {2}


def test_create_partitions_validate_only_and_duplicates() -> None:
    image = with_topic(cluster(), "t")
    decision = controller().decide(image, CreatePartitions((MorePartitions("t", 3),), validate_only=True))
    assert (decision.reply[0].outcome, decision.steps) == (DONE, ())
    twice = CreatePartitions((MorePartitions("t", 3), MorePartitions("t", 4)))
    (reply,) = controller().decide(image, twice).reply
    assert reply.outcome.message == "Duplicate topic name."
