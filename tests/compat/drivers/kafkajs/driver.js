// KafkaJS behind JSON lines: one command per line on standard input, one response per line on standard output.
"use strict";

const readline = require("node:readline");
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
const lz4 = require("lz4js");
const snappy = require("snappyjs");
const zstd = require("@bokuweb/zstd-wasm");
const groups = require("./groups");
const secured = require("./secured");
const sessions = require("./sessions");

const ACKS = { 0: 0, 1: 1, all: -1 };
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

// KafkaJS has only gzip built in and takes the others from its users.
const codec = (compress, decompress) => () => ({
  compress: async (encoder) => Buffer.from(compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(decompress(buffer)),
});
CompressionCodecs[CompressionTypes.Snappy] = codec(snappy.compress, snappy.uncompress);
CompressionCodecs[CompressionTypes.LZ4] = codec(compressLz4, lz4.decompress);
CompressionCodecs[CompressionTypes.ZSTD] = codec(zstd.compress, zstd.decompress);

// lz4js does not say that its one block stands alone, and Kafka takes only blocks that do. These are the flags of a frame
// that says so (independent blocks, of 4 MB at most) with the checksum of those flags.
function compressLz4(buffer) {
  const frame = lz4.compress(buffer);
  frame.set([0x60, 0x70, 0x73], 4);
  return frame;
}

const connect = () =>
  new Kafka({
    brokers: process.argv[2].split(","),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 5 },
  });
const kafka = connect();
const admin = kafka.admin();

class Refused extends Error {
  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

function asMessage(record) {
  const headers = {};
  for (const [name, value] of record.headers) {
    headers[name] = [...(headers[name] || []), bytes(value)];
  }
  const message = { partition: record.partition, key: bytes(record.key), value: bytes(record.value), headers };
  if (record.timestamp !== null) {
    message.timestamp = String(record.timestamp);
  }
  return message;
}

async function produce(command) {
  const producer = kafka.producer({ idempotent: command.idempotent, createPartitioner: () => ({ message }) => message.partition });
  await producer.connect();
  try {
    const sent = await producer.send({
      topic: command.topic,
      acks: ACKS[command.acks],
      compression: CODECS[command.codec],
      messages: command.records.map(asMessage),
    });
    const next = new Map(sent.map((each) => [each.partition, Number(each.baseOffset)]));
    return command.records.map(({ partition }) => {
      const offset = next.get(partition) ?? -1;
      next.set(partition, offset + 1);
      return offset;
    });
  } finally {
    await producer.disconnect();
  }
}

async function createTopic({ topic, partitions, config }) {
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
  const created = await admin.createTopics({
    topics: [{ topic, numPartitions: partitions, replicationFactor: -1, configEntries }],
  });
  if (!created) {
    throw new Refused("TOPIC_ALREADY_EXISTS", "createTopics() returned false");
  }
}

async function partitionCount({ topic }) {
  if (!(await admin.listTopics()).includes(topic)) {
    return 0;
  }
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  return topics[0].partitions.length;
}

async function bounds({ topic, partition }) {
  const found = (await admin.fetchTopicOffsets(topic)).find((each) => each.partition === partition);
  return { low: Number(found.low), high: Number(found.high) };
}

async function listOffset(command) {
  const { low, high } = await bounds(command);
  if (command.position === "earliest") {
    return low;
  }
  if (command.position === "latest") {
    return high;
  }
  const found = await admin.fetchTopicOffsetsByTimestamp(command.topic, command.value);
  const offset = Number(found.find((each) => each.partition === command.partition).offset);
  return offset === high ? -1 : offset; // KafkaJS puts the end offset where the broker found no record
}

async function deleteRecords(command) {
  await bounds(command); // deleteTopicRecords() knows the leaders only of topics it was asked about before
  const partitions = [{ partition: command.partition, offset: String(command.before_offset) }];
  await admin.deleteTopicRecords({ topic: command.topic, partitions });
  return (await bounds(command)).low;
}

const resource = (topic) => ({ type: ConfigResourceTypes.TOPIC, name: topic });

async function describeConfig({ topic }) {
  const { resources } = await admin.describeConfigs({ resources: [resource(topic)], includeSynonyms: false });
  return Object.fromEntries(resources[0].configEntries.map((entry) => [entry.configName, entry.configValue]));
}

async function alterConfig({ topic, config }) {
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource(topic), configEntries }] });
}

const CALLS = {
  create_topic: createTopic,
  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  create_partitions: ({ topic, total }) => admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),
  partition_count: partitionCount,
  produce,
  list_offset: listOffset,
  delete_records: deleteRecords,
  describe_config: describeConfig,
  alter_config: alterConfig,
  ...groups.calls(admin),
  ...secured.calls,
  ...sessions.calls(connect, admin),
};

async function respond(line) {
  try {
    const command = JSON.parse(line);
    return { result: (await CALLS[command.call](command)) ?? null };
  } catch (error) {
    return { error: sessions.typeOf(error), message: String(error) };
  }
}

async function main() {
  await zstd.init();
  await admin.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await respond(line))}\n`);
  }
  process.exit(); // whatever is still open
}

main();
