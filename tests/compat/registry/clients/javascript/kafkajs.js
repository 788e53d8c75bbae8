// @kafkajs/confluent-schema-registry, the client that most users of KafkaJS have.
"use strict";

const { COMPATIBILITY, SchemaRegistry } = require("@kafkajs/confluent-schema-registry");

module.exports = (url) => {
  // It takes options of Protobuf for all schemas of a client: which message of a file is meant.
  const connect = (message) => new SchemaRegistry({ host: url, retry: { retries: 0 } }, options(message));

  const options = (message) => (message ? { PROTOBUF: { messageName: message.split(".").pop() } } : {});

  const schema = ({ type, schema, references }) => ({ type, schema, references });

  return {
    errorCode: (error) => (error.status === undefined ? error.name : `${error.name} ${error.status}`),

    async register(command) {
      // It sets the level of a subject that it registers first.
      const chosen = { subject: command.subject, compatibility: COMPATIBILITY.BACKWARD };
      return (await connect().register(schema(command), chosen)).id;
    },
    lookup: (command) => connect().getRegistryIdBySchema(command.subject, schema(command)),

    async serialize(command) {
      const registry = connect(command.message);
      const { id } = await registry.register(schema(command), { subject: `${command.topic}-value` });
      return { data: (await registry.encode(id, command.value)).toString("base64"), headers: [] };
    },
    async deserialize(command) {
      const value = await connect(command.message).decode(Buffer.from(command.data, "base64"));
      return JSON.parse(JSON.stringify(value));
    },
  };
};
