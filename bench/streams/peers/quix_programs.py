"""The word count in Quix Streams: PROGRAM BOOTSTRAP APPLICATION GUARANTEE FOLDER, run in a separate environment."""

import sys

from quixstreams import Application


def count(word, state):
    total = state.get("count", 0) + 1
    state.set("count", total)
    return total


def main():
    _, bootstrap, application, guarantee, folder = sys.argv[1:]
    app = Application(
        broker_address=bootstrap,
        consumer_group=application,
        state_dir=folder,
        auto_offset_reset="earliest",
        commit_interval=0.1,
        processing_guarantee="exactly-once" if guarantee == "exactly_once_v2" else "at-least-once",
        loglevel="WARNING",
    )
    lines = app.topic("lines", key_deserializer="str", value_deserializer="str")
    results = app.topic("results", key_serializer="str", value_serializer="integer")
    words = app.dataframe(lines).apply(lambda line: line.split(" "), expand=True)
    counted = words.group_by(
        lambda word: word,
        name="word",
        value_deserializer="str",
        key_deserializer="str",
        value_serializer="str",
        key_serializer="str",
    ).apply(count, stateful=True)
    counted.to_topic(results)
    app.run()


main()
