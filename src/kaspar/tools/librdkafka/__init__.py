"""Translates properties of Java's clients to librdkafka's settings, for commands that handle records one by one.

    translated = consumer_settings({"bootstrap.servers": "localhost:9092", "group.id": "shop"})
    for sentence in translated.warnings:
        print(sentence, file=sys.stderr)
    consumer = confluent_kafka.Consumer(translated.settings)

Defaults are those of Java's clients, too: by default, librdkafka's producers choose other partitions for a key, and its
consumers skip aborted records. Sizes and times that only affect performance keep librdkafka's defaults. A property
without a counterpart is left out, with a warning if a Java client would act on it.

`max.block.ms`, `max.poll.records`, `default.api.timeout.ms`, `exclude.internal.topics` and (de)serializers must be
implemented by the caller, because librdkafka leaves them to its application.
"""

from kaspar.tools.librdkafka.consumers import consumer_settings
from kaspar.tools.librdkafka.producers import producer_settings
from kaspar.tools.librdkafka.translation import Translated

__all__ = ["Translated", "consumer_settings", "producer_settings"]
