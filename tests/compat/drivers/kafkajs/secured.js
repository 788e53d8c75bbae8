// How a client gets in at a secured listener. Files are PEM; a bearer's password is its token.
"use strict";

const fs = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

function ssl({ ca, certificate }) {
  if (!ca) {
    return false;
  }
  const own = certificate ? fs.readFileSync(certificate, "utf8") : undefined;
  return { ca: [fs.readFileSync(ca, "utf8")], cert: own, key: own, servername: "localhost" };
}

function sasl({ mechanism, user, password }) {
  if (!mechanism) {
    return undefined;
  }
  if (mechanism === "OAUTHBEARER") {
    return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: password }) };
  }
  return { mechanism: mechanism.toLowerCase(), username: user, password };
}

// Writes the values to the first partition of a topic, and reads as many from its beginning.
async function roundTrip(command) {
  const kafka = new Kafka({
    brokers: [command.servers],
    ssl: ssl(command),
    sasl: sasl(command),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: command.retries },
  });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: `group of ${command.topic}` });
  try {
    await producer.connect();
    await producer.send({ topic: command.topic, messages: command.values.map((value) => ({ value, partition: 0 })) });
    await consumer.connect();
    await consumer.subscribe({ topic: command.topic, fromBeginning: true });
    return await consumed(consumer, command.values.length);
  } finally {
    await consumer.disconnect();
    await producer.disconnect();
  }
}

function consumed(consumer, count) {
  const received = [];
  return new Promise((resolve, reject) => {
    consumer.on("consumer.crash", ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }) => {
      received.push(message.value.toString());
      if (received.length === count) {
        resolve(received);
      }
    };
    consumer.run({ eachMessage }).catch(reject);
  });
}

module.exports = { calls: { secured_round_trip: roundTrip } };
