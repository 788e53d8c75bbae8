"""The settings of librdkafka from the properties of Java's clients, for commands that handle records one by one.

    translated = consumer_settings({"bootstrap.servers": "localhost:9092", "group.id": "shop"})
    for sentence in translated.warnings:
        print(sentence, file=sys.stderr)
    consumer = confluent_kafka.Consumer(translated.settings)

What a client does when nothing is said follows Java's clients, too: librdkafka's producers choose other partitions by
the key, and its consumers skip aborted records by default. Sizes and times that only matter for speed stay librdkafka's
own. A property that has no counterpart is left out, with a warning if a Java client would act on it.

`max.block.ms`, `max.poll.records`, `default.api.timeout.ms`, `exclude.internal.topics` and (de)serializers are for the
caller: librdkafka leaves to its application what they say.
"""

from kaspar.tools.librdkafka.consumers import consumer_settings
from kaspar.tools.librdkafka.producers import producer_settings
from kaspar.tools.librdkafka.translation import Translated

__all__ = ["Translated", "consumer_settings", "producer_settings"]
