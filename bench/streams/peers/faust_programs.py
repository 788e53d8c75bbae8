"""The word count in Faust: PROGRAM BOOTSTRAP APPLICATION GUARANTEE FOLDER, run in a separate environment."""

import sys

import faust

_, bootstrap, application, guarantee, folder = sys.argv[1:]
app = faust.App(
    application,
    broker=f"kafka://{bootstrap}",
    datadir=folder,
    store="memory://",
    broker_commit_interval=0.1,
    consumer_auto_offset_reset="earliest",
    processing_guarantee="exactly_once" if guarantee == "exactly_once_v2" else "at_least_once",
    topic_partitions=2,
    web_enabled=False,
)
lines = app.topic("lines", key_type=bytes, value_type=bytes, value_serializer="raw", key_serializer="raw")
words = app.topic(f"{application}-words", key_type=str, value_type=str, internal=True, partitions=2)
results = app.topic("results", key_type=str, value_type=int)
counts = app.Table("counts", default=int, partitions=2)


@app.agent(lines)
async def split(stream):
    async for line in stream:
        for word in line.decode().split(" "):
            await words.send(key=word, value=word)


@app.agent(words)
async def count(stream):
    async for word in stream:
        counts[word] += 1
        await results.send(key=word, value=counts[word])


sys.argv = ["faust", "worker", "--loglevel=warn", "--without-web"]
app.main()
