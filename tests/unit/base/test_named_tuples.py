"""What new_tuple builds is what the constructor builds."""

from kaspar.base.ids import TopicPartition
from kaspar.base.named_tuples import new_tuple


def test_new_tuple_builds_what_the_constructor_builds() -> None:
    built = new_tuple(TopicPartition, ("topic", 3))
    assert built == TopicPartition("topic", 3)
    assert type(built) is TopicPartition
    assert (built.topic, str(built)) == ("topic", "topic-3")
