// What stays open between commands: consumers in groups, transactional producers, transformers.
"use strict";

let last = 0;
const consumers = new Map();
const producers = new Map();
const transformers = new Map();

function open(kind, session) {
  last += 1;
  kind.set(last, session);
  return last;
}

// KafkaJS reports the type of Kafka's error inside what it wraps around it: several errors, those of groups or partitions, or a cause.
function typeOf(error) {
  const inner = error.errors?.[0] ?? error.groups?.[0]?.error ?? error.partitions?.[0]?.error ?? error.cause;
  return error.type ?? (inner ? typeOf(inner) : error.name);
}

const places = (assignment) =>
  Object.entries(assignment).flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition]));

// A consumer with what all scenarios ask for, not running yet.
async function groupConsumer(kafka, options, seen) {
  const consumer = kafka.consumer({
    groupId: options.group,
    sessionTimeout: options.session_timeout_ms,
    heartbeatInterval: options.heartbeat_interval_ms,
    metadataMaxAge: options.metadata_max_age_ms,
    readUncommitted: options.isolation === "read_uncommitted",
    maxWaitTimeInMs: 200,
    retry: { initialRetryTime: 50, maxRetryTime: 1000, retries: 60 },
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    seen.rebalances += 1;
    seen.assignment = places(payload.memberAssignment);
  });
  consumer.on(consumer.events.REBALANCING, () => {
    seen.assignment = [];
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    seen.assignment = [];
    seen.error = payload.restart ? null : typeOf(payload.error);
  });
  await consumer.connect();
  const topics = options.pattern === null ? options.topics : [new RegExp(options.pattern)];
  await consumer.subscribe({ topics, fromBeginning: options.reset === "earliest" });
  return consumer;
}

async function openConsumer(kafka, options) {
  const seen = { assignment: [], rebalances: 0, records: [], error: null };
  const positions = new Map(); // of each partition, as a JSON text: the offset after the last record handed out
  const consumer = await groupConsumer(kafka, options, seen);
  await consumer.run({
    autoCommit: options.auto_commit,
    autoCommitInterval: options.auto_commit_interval_ms,
    eachMessage: async ({ topic, partition, message }) => {
      seen.records.push([topic, partition, Number(message.offset), message.value.toString()]);
      positions.set(JSON.stringify([topic, partition]), Number(message.offset) + 1);
    },
  });
  return open(consumers, { consumer, seen, positions, group: options.group });
}

async function commit({ consumer, positions }, rows) {
  const offsets = rows ?? [...positions].map(([place, offset]) => [...JSON.parse(place), offset, ""]);
  await consumer.commitOffsets(
    offsets.map(([topic, partition, offset, metadata]) => ({ topic, partition, offset: String(offset), metadata })),
  );
}

async function openProducer(kafka, { transactional_id, transaction_timeout_ms }) {
  const producer = kafka.producer({
    transactionalId: transactional_id,
    transactionTimeout: transaction_timeout_ms,
    maxInFlightRequests: 1,
    idempotent: true,
    createPartitioner: () => ({ message }) => message.partition,
  });
  await producer.connect();
  return producer;
}

// Reads, writes in upper case to the same partition of another topic, and commits both in one transaction.
async function openTransformer(kafka, words) {
  const seen = { assignment: [], rebalances: 0, committed: 0, aborted: 0, error: null };
  let abortNext = words.abort_first;
  const producer = await openProducer(kafka, words);
  const consumer = await groupConsumer(kafka, words, seen);
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset }) => {
      const { topic, partition, messages } = batch;
      const transaction = await producer.transaction();
      const values = messages.map(({ value }) => ({ partition, value: value.toString().toUpperCase() }));
      await transaction.send({ topic: words.target, messages: values });
      const offset = String(Number(batch.lastOffset()) + 1);
      await transaction.sendOffsets({ consumerGroupId: words.group, topics: [{ topic, partitions: [{ partition, offset }] }] });
      if (abortNext) {
        abortNext = false;
        await transaction.abort();
        consumer.seek({ topic, partition, offset: messages[0].offset });
        seen.aborted += 1;
      } else {
        await transaction.commit();
        resolveOffset(batch.lastOffset());
        seen.committed += 1;
      }
    },
  });
  return open(transformers, { consumer, producer, seen });
}

async function closeAll(kind, number, ...names) {
  const session = kind.get(number);
  kind.delete(number);
  for (const name of names) {
    await session[name].disconnect();
  }
}

// Each session has a client of its own: consumers of one client that are in the same group share a table of offsets, and
// KafkaJS stops with a TypeError where one of them has no partition.
const calls = (connect, admin) => ({
  consumer_open: (options) => openConsumer(connect(), options),
  consumer_look: ({ consumer, after }) => {
    const { seen } = consumers.get(consumer);
    return { ...seen, records: seen.records.slice(after) };
  },
  consumer_commit: ({ consumer, offsets }) => commit(consumers.get(consumer), offsets),
  consumer_committed: async ({ consumer, places: asked }) => {
    const topics = [...new Set(asked.map(([topic]) => topic))];
    const found = await admin.fetchOffsets({ groupId: consumers.get(consumer).group, topics });
    return found.flatMap(({ topic, partitions }) =>
      partitions
        .filter(({ partition }) => asked.some(([name, number]) => name === topic && number === partition))
        .map(({ partition, offset }) => [topic, partition, Number(offset)]),
    );
  },
  consumer_seek: ({ consumer, topic, partition, offset }) =>
    consumers.get(consumer).consumer.seek({ topic, partition, offset: String(offset) }),
  consumer_close: ({ consumer }) => closeAll(consumers, consumer, "consumer"),

  producer_open: async (words) => {
    const producer = await openProducer(connect(), words);
    return open(producers, { producer, next: await producer.transaction() }); // only this asks for the producer id
  },
  producer_begin: async ({ producer }) => {
    const session = producers.get(producer);
    session.transaction = session.next ?? (await session.producer.transaction());
    session.next = null;
  },
  producer_send: ({ producer, topic, partition, values }) =>
    producers.get(producer).transaction.send({ topic, messages: values.map((value) => ({ partition, value })) }),
  producer_commit: ({ producer }) => producers.get(producer).transaction.commit(),
  producer_abort: ({ producer }) => producers.get(producer).transaction.abort(),
  producer_close: ({ producer }) => closeAll(producers, producer, "producer"),

  transformer_open: (words) => openTransformer(connect(), words),
  transformer_look: ({ transformer }) => {
    const { committed, aborted, error } = transformers.get(transformer).seen;
    return { committed, aborted, error };
  },
  transformer_close: ({ transformer }) => closeAll(transformers, transformer, "consumer", "producer"),
});

module.exports = { calls, typeOf };
