// @confluentinc/schemaregistry: its client, and its serializers for the three formats.
"use strict";

const {
  AvroDeserializer,
  AvroSerializer,
  HeaderSchemaIdSerializer,
  JsonDeserializer,
  JsonSerializer,
  ProtobufDeserializer,
  ProtobufSerializer,
  SchemaRegistryClient,
  SerdeType,
} = require("@confluentinc/schemaregistry");
const { createFileRegistry, createMutableRegistry, fromBinary, fromJson, toJson } = require("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");

const SERIALIZERS = { AVRO: AvroSerializer, JSON: JsonSerializer, PROTOBUF: ProtobufSerializer };
const DESERIALIZERS = { AVRO: AvroDeserializer, JSON: JsonDeserializer, PROTOBUF: ProtobufDeserializer };

module.exports = (url) => {
  const connect = () => new SchemaRegistryClient({ baseURLs: [url], cacheCapacity: 100, maxRetries: 1 });

  const info = ({ type, schema, references }) => ({ schemaType: type, schema, references });

  function descriptors(command) {
    const bytes = Buffer.from(command.descriptors, "base64");
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  }

  return {
    errorCode: (error) => (error.errorCode === undefined ? error.name : String(error.errorCode)),

    register: (command) => connect().register(command.subject, info(command), command.normalize || false),
    async schema({ subject, id }) {
      const found = await connect().getBySubjectAndId(subject, id);
      return { schema: found.schema, type: found.schemaType || "AVRO", references: found.references || [] };
    },
    lookup: (command) => connect().getId(command.subject, info(command), false),
    versions: ({ subject }) => connect().getAllVersions(subject),
    subjects: () => connect().getAllSubjects(),
    compatible: (command) => connect().testSubjectCompatibility(command.subject, info(command)),
    async level({ subject, level }) {
      await connect().updateCompatibility(subject, level);
      return connect().getCompatibility(subject);
    },
    delete: ({ subject, permanent }) => connect().deleteSubject(subject, permanent),

    async serialize(command) {
      const registry = connect();
      const headers = {};
      const conf = command.header ? { schemaIdSerializer: HeaderSchemaIdSerializer } : {};
      let value = command.value;
      if (command.type === "PROTOBUF") {
        const files = descriptors(command);
        const message = files.getMessage(command.message);
        conf.registry = createMutableRegistry(...files);
        conf.autoRegisterSchemas = true;
        value = fromJson(message, value);
      } else {
        // Left to itself, this client registers a schema that it derives from the value.
        await registry.register(`${command.topic}-value`, info(command), false);
        conf.autoRegisterSchemas = false;
        conf.useLatestVersion = true;
      }
      const serializer = new SERIALIZERS[command.type](registry, SerdeType.VALUE, conf);
      const data = await serializer.serialize(command.topic, value, headers);
      const encoded = Object.entries(headers).map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]);
      return { data: data.toString("base64"), headers: encoded };
    },

    async deserialize(command) {
      const deserializer = new DESERIALIZERS[command.type](connect(), SerdeType.VALUE, {});
      const headers = Object.fromEntries(command.headers.map(([name, text]) => [name, Buffer.from(text, "base64")]));
      const value = await deserializer.deserialize(command.topic, Buffer.from(command.data, "base64"), headers);
      return command.type === "PROTOBUF" ? toJson(descriptors(command).getMessage(command.message), value) : value;
    },
  };
};
