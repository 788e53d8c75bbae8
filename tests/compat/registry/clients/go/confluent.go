package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// confluent is confluent-kafka-go's client, with its serializers for the three formats.
type confluent struct {
	url string
}

func newConfluent(url string) client {
	return &confluent{url}
}

func (c *confluent) errorCode(err error) string {
	var refused *rest.Error
	if errors.As(err, &refused) {
		return strconv.Itoa(refused.Code)
	}
	return fmt.Sprintf("%T", err)
}

func info(asked command) schemaregistry.SchemaInfo {
	found := schemaregistry.SchemaInfo{Schema: asked.Schema, SchemaType: asked.Type}
	for _, each := range asked.References {
		found.References = append(found.References, schemaregistry.Reference(each))
	}
	return found
}

func (c *confluent) call(asked command) (any, error) {
	// A client of its own for each call: none has the schema in its cache.
	registry, err := schemaregistry.NewClient(schemaregistry.NewConfig(c.url))
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	switch asked.Call {
	case "register":
		return registry.Register(asked.Subject, info(asked), false)
	case "schema":
		found, err := registry.GetBySubjectAndID(asked.Subject, asked.ID)
		if err != nil {
			return nil, err
		}
		result := registered{found.Schema, found.SchemaType, []reference{}}
		for _, each := range found.References {
			result.References = append(result.References, reference(each))
		}
		return result, nil
	case "lookup":
		return registry.GetID(asked.Subject, info(asked), false)
	case "versions":
		return registry.GetAllVersions(asked.Subject)
	case "subjects":
		return registry.GetAllSubjects()
	case "compatible":
		return registry.TestSubjectCompatibility(asked.Subject, info(asked))
	case "level":
		var level schemaregistry.Compatibility
		if err := level.ParseString(asked.Level); err != nil {
			return nil, err
		}
		if _, err := registry.UpdateCompatibility(asked.Subject, level); err != nil {
			return nil, err
		}
		found, err := registry.GetCompatibility(asked.Subject)
		return found.String(), err
	case "delete":
		return registry.DeleteSubject(asked.Subject, asked.Permanent)
	case "serialize":
		return c.serialize(registry, asked)
	case "deserialize":
		return c.deserialize(registry, asked)
	}
	return nil, unknown(asked)
}

func (c *confluent) serialize(registry schemaregistry.Client, asked command) (any, error) {
	var headers []kafka.Header
	var data []byte
	var err error
	if asked.Type == "PROTOBUF" {
		headers, data, err = c.serializeMessage(registry, asked)
	} else {
		headers, data, err = c.serializeValue(registry, asked)
	}
	written := record{data, [][2]string{}}
	for _, each := range headers {
		written.Headers = append(written.Headers, [2]string{each.Key, encoded(each.Value)})
	}
	return written, err
}

func (c *confluent) serializeValue(registry schemaregistry.Client, asked command) ([]kafka.Header, []byte, error) {
	// Left to itself, this client registers a schema that it derives from a type of Go.
	if _, err := registry.Register(asked.Topic+"-value", info(asked), false); err != nil {
		return nil, nil, err
	}
	value, err := plainValue(asked.Value)
	if err != nil {
		return nil, nil, err
	}
	if asked.Type == "AVRO" {
		conf := avrov2.NewSerializerConfig()
		conf.AutoRegisterSchemas, conf.UseLatestVersion = false, true
		serializer, err := avrov2.NewSerializer(registry, serde.ValueSerde, conf)
		if err != nil {
			return nil, nil, err
		}
		chooseHeader(&serializer.BaseSerializer, asked)
		return serializer.SerializeWithHeaders(asked.Topic, &value)
	}
	conf := jsonschema.NewSerializerConfig()
	conf.AutoRegisterSchemas, conf.UseLatestVersion, conf.EnableValidation = false, true, true
	serializer, err := jsonschema.NewSerializer(registry, serde.ValueSerde, conf)
	if err != nil {
		return nil, nil, err
	}
	chooseHeader(&serializer.BaseSerializer, asked)
	return serializer.SerializeWithHeaders(asked.Topic, value)
}

func (c *confluent) serializeMessage(registry schemaregistry.Client, asked command) ([]kafka.Header, []byte, error) {
	descriptor, err := messageDescriptor(asked)
	if err != nil {
		return nil, nil, err
	}
	message := dynamicpb.NewMessage(descriptor)
	if err := protojson.Unmarshal(asked.Value, message); err != nil {
		return nil, nil, err
	}
	serializer, err := protobuf.NewSerializer(registry, serde.ValueSerde, protobuf.NewSerializerConfig())
	if err != nil {
		return nil, nil, err
	}
	chooseHeader(&serializer.BaseSerializer, asked)
	return serializer.SerializeWithHeaders(asked.Topic, message)
}

func chooseHeader(serializer *serde.BaseSerializer, asked command) {
	if asked.Header {
		serializer.SchemaIDSerializer = serde.HeaderSchemaIDSerializer
	}
}

func (c *confluent) deserialize(registry schemaregistry.Client, asked command) (any, error) {
	var headers []kafka.Header
	for _, each := range asked.Headers {
		value, err := base64.StdEncoding.DecodeString(each[1])
		if err != nil {
			return nil, err
		}
		headers = append(headers, kafka.Header{Key: each[0], Value: value})
	}
	var value map[string]any
	switch asked.Type {
	case "AVRO":
		deserializer, err := avrov2.NewDeserializer(registry, serde.ValueSerde, avrov2.NewDeserializerConfig())
		if err != nil {
			return nil, err
		}
		err = deserializer.DeserializeWithHeadersInto(asked.Topic, headers, asked.Data, &value)
		return value, err
	case "JSON":
		deserializer, err := jsonschema.NewDeserializer(registry, serde.ValueSerde, jsonschema.NewDeserializerConfig())
		if err != nil {
			return nil, err
		}
		err = deserializer.DeserializeWithHeadersInto(asked.Topic, headers, asked.Data, &value)
		return value, err
	}
	return c.deserializeMessage(registry, asked, headers)
}

func (c *confluent) deserializeMessage(
	registry schemaregistry.Client, asked command, headers []kafka.Header,
) (any, error) {
	descriptor, err := messageDescriptor(asked)
	if err != nil {
		return nil, err
	}
	deserializer, err := protobuf.NewDeserializer(registry, serde.ValueSerde, protobuf.NewDeserializerConfig())
	if err != nil {
		return nil, err
	}
	if deserializer.ProtoRegistry, err = messageTypes(descriptor); err != nil {
		return nil, err
	}
	message, err := deserializer.DeserializeWithHeaders(asked.Topic, headers, asked.Data)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(message.(proto.Message))
	return json.RawMessage(text), err
}
