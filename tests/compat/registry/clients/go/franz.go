package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// franz is franz-go's client. Its serde frames records, and leaves the formats to functions of its users.
type franz struct {
	registry *sr.Client
}

func newFranz(url string) client {
	registry, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		panic(err)
	}
	return &franz{registry}
}

func (f *franz) errorCode(err error) string {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return strconv.Itoa(refused.ErrorCode)
	}
	return fmt.Sprintf("%T", err)
}

func schemaOf(asked command) sr.Schema {
	var kind sr.SchemaType
	if err := kind.UnmarshalText([]byte(asked.Type)); err != nil {
		panic(err)
	}
	schema := sr.Schema{Schema: asked.Schema, Type: kind}
	for _, each := range asked.References {
		schema.References = append(schema.References, sr.SchemaReference(each))
	}
	return schema
}

func (f *franz) call(asked command) (any, error) {
	ctx := context.Background()
	switch asked.Call {
	case "register":
		created, err := f.registry.CreateSchema(ctx, asked.Subject, schemaOf(asked))
		return created.ID, err
	case "schema":
		found, err := f.registry.SchemaByID(ctx, asked.ID)
		result := registered{found.Schema, found.Type.String(), []reference{}}
		for _, each := range found.References {
			result.References = append(result.References, reference(each))
		}
		return result, err
	case "lookup":
		found, err := f.registry.LookupSchema(ctx, asked.Subject, schemaOf(asked))
		return found.ID, err
	case "versions":
		return f.registry.SubjectVersions(ctx, asked.Subject)
	case "subjects":
		return f.registry.Subjects(ctx)
	case "compatible":
		checked, err := f.registry.CheckCompatibility(ctx, asked.Subject, -1, schemaOf(asked))
		return checked.Is, err
	case "level":
		var level sr.CompatibilityLevel
		if err := level.UnmarshalText([]byte(asked.Level)); err != nil {
			return nil, err
		}
		changed := f.registry.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, asked.Subject)
		if changed[0].Err != nil {
			return nil, changed[0].Err
		}
		found := f.registry.Compatibility(ctx, asked.Subject)[0]
		return found.Level.String(), found.Err
	case "delete":
		how := sr.SoftDelete
		if asked.Permanent {
			how = sr.HardDelete
		}
		return f.registry.DeleteSubject(ctx, asked.Subject, how)
	case "serialize":
		return f.serialize(ctx, asked)
	case "deserialize":
		return f.deserialize(ctx, asked)
	}
	return nil, unknown(asked)
}

func (f *franz) serialize(ctx context.Context, asked command) (any, error) {
	created, err := f.registry.CreateSchema(ctx, asked.Topic+"-value", schemaOf(asked))
	if err != nil {
		return nil, err
	}
	formats := sr.NewSerde()
	var value any
	if asked.Type == "PROTOBUF" {
		descriptor, err := messageDescriptor(asked)
		if err != nil {
			return nil, err
		}
		message := dynamicpb.NewMessage(descriptor)
		if err := protojson.Unmarshal(asked.Value, message); err != nil {
			return nil, err
		}
		encode := sr.EncodeFn(func(value any) ([]byte, error) { return proto.Marshal(value.(proto.Message)) })
		formats.Register(created.ID, message, encode, sr.Index(messageIndex(descriptor)...))
		value = message
	} else {
		encode := sr.EncodeFn(json.Marshal)
		if asked.Type == "AVRO" {
			schema, err := f.avroSchema(ctx, created.Schema)
			if err != nil {
				return nil, err
			}
			encode = sr.EncodeFn(func(value any) ([]byte, error) { return avro.Marshal(schema, value) })
		}
		formats.Register(created.ID, map[string]any{}, encode)
		if value, err = plainValue(asked.Value); err != nil {
			return nil, err
		}
	}
	data, err := formats.Encode(value)
	return record{data, [][2]string{}}, err
}

func (f *franz) deserialize(ctx context.Context, asked command) (any, error) {
	var formats sr.Serde
	id, data, err := formats.DecodeID(asked.Data)
	if err != nil {
		return nil, err
	}
	found, err := f.registry.SchemaByID(ctx, id)
	if err != nil {
		return nil, err
	}
	var value map[string]any
	switch asked.Type {
	case "AVRO":
		schema, err := f.avroSchema(ctx, found)
		if err != nil {
			return nil, err
		}
		err = avro.Unmarshal(schema, data, &value)
		return value, err
	case "JSON":
		err := json.Unmarshal(data, &value)
		return value, err
	}
	descriptor, err := messageDescriptor(asked)
	if err != nil {
		return nil, err
	}
	index, data, err := formats.DecodeIndex(data, 8)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(index, messageIndex(descriptor)) {
		return nil, fmt.Errorf("the record names the message %v", index)
	}
	message := dynamicpb.NewMessage(descriptor)
	if err := proto.Unmarshal(data, message); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(message)
	return json.RawMessage(text), err
}

// A schema with all that it refers to, fetched by subject and version.
func (f *franz) avroSchema(ctx context.Context, schema sr.Schema) (avro.Schema, error) {
	cache := &avro.SchemaCache{}
	if err := f.parseReferences(ctx, schema, cache); err != nil {
		return nil, err
	}
	return avro.ParseWithCache(schema.Schema, "", cache)
}

func (f *franz) parseReferences(ctx context.Context, schema sr.Schema, cache *avro.SchemaCache) error {
	for _, each := range schema.References {
		found, err := f.registry.SchemaByVersion(ctx, each.Subject, each.Version)
		if err != nil {
			return err
		}
		if err := f.parseReferences(ctx, found.Schema, cache); err != nil {
			return err
		}
		if _, err := avro.ParseWithCache(found.Schema.Schema, "", cache); err != nil {
			return err
		}
	}
	return nil
}

func messageIndex(descriptor protoreflect.Descriptor) []int {
	var index []int
	for descriptor.Parent() != nil {
		index = append(index, descriptor.Index())
		descriptor = descriptor.Parent()
	}
	slices.Reverse(index)
	return index
}
