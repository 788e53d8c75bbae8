// The registry clients of Go behind JSON lines: one command per line on standard input, one response per line on
// standard output. Arguments: which client, and the registry's URL.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

type command struct {
	Call        string          `json:"call"`
	Subject     string          `json:"subject"`
	Topic       string          `json:"topic"`
	ID          int             `json:"id"`
	Type        string          `json:"type"`
	Schema      string          `json:"schema"`
	References  []reference     `json:"references"`
	Level       string          `json:"level"`
	Permanent   bool            `json:"permanent"`
	Header      bool            `json:"header"`
	Value       json.RawMessage `json:"value"`
	Data        []byte          `json:"data"`
	Headers     [][2]string     `json:"headers"`
	Message     string          `json:"message"`
	Descriptors []byte          `json:"descriptors"`
}

type registered struct {
	Schema     string      `json:"schema"`
	Type       string      `json:"type"`
	References []reference `json:"references"`
}

type record struct {
	Data    []byte      `json:"data"`
	Headers [][2]string `json:"headers"`
}

type client interface {
	call(command) (any, error)
	errorCode(error) string
}

func main() {
	var chosen client
	if os.Args[1] == "confluent" {
		chosen = newConfluent(os.Args[2])
	} else {
		chosen = newFranz(os.Args[2])
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		result, err := chosen.call(asked)
		if err == nil {
			out.Encode(map[string]any{"result": result})
		} else {
			out.Encode(map[string]any{"error": chosen.errorCode(err), "message": err.Error()})
		}
	}
}

func unknown(asked command) error {
	return fmt.Errorf("this client has no call %q", asked.Call)
}

// The numbers of JSON are all floats to Go; Avro's encoder wants the kinds of Go that the schema names.
func plainValue(text json.RawMessage) (map[string]any, error) {
	var value map[string]any
	err := json.Unmarshal(text, &value)
	return integers(value).(map[string]any), err
}

func integers(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for name, each := range typed {
			typed[name] = integers(each)
		}
	case []any:
		for index, each := range typed {
			typed[index] = integers(each)
		}
	case float64:
		if typed == float64(int(typed)) {
			return int(typed)
		}
	}
	return value
}

// The descriptor of the message that a command names, among the files that came with it.
func messageDescriptor(asked command) (protoreflect.MessageDescriptor, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(asked.Descriptors, &set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(asked.Message))
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.MessageDescriptor), nil
}

func messageTypes(descriptor protoreflect.MessageDescriptor) (*protoregistry.Types, error) {
	types := new(protoregistry.Types)
	return types, types.RegisterMessage(dynamicpb.NewMessageType(descriptor))
}

func encoded(data []byte) string {
	return base64.StdEncoding.EncodeToString(data)
}
