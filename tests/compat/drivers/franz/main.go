// franz-go behind JSON lines: one command per line on standard input, one response per line on standard output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type command struct {
	Call         string            `json:"call"`
	TimeoutMs    int64             `json:"timeout_ms"`
	Topic        string            `json:"topic"`
	Partition    int32             `json:"partition"`
	Partitions   int32             `json:"partitions"`
	Total        int               `json:"total"`
	Config       map[string]string `json:"config"`
	Records      []record          `json:"records"`
	Acks         string            `json:"acks"`
	Codec        string            `json:"codec"`
	Idempotent   bool              `json:"idempotent"`
	MaxBytes     int32             `json:"max_bytes"`
	Start        string            `json:"start"`
	Position     string            `json:"position"`
	Value        int64             `json:"value"`
	Count        int               `json:"count"`
	BeforeOffset int64             `json:"before_offset"`

	consumerOptions
	login
	Consumer             int      `json:"consumer"`
	Producer             int      `json:"producer"`
	Transformer          int      `json:"transformer"`
	After                int      `json:"after"`
	Offset               int64    `json:"offset"`
	Offsets              []row    `json:"offsets"`
	Wait                 bool     `json:"wait"`
	Places               []place  `json:"places"`
	TransactionalID      string   `json:"transactional_id"`
	TransactionTimeoutMs int64    `json:"transaction_timeout_ms"`
	Target               string   `json:"target"`
	AbortFirst           bool     `json:"abort_first"`
	Values               []string `json:"values"`
}

// A []byte is base64 in JSON, and nil is null: exactly the form that the commands have.
type record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type header struct {
	name  string
	value []byte
}

func (h header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.name, h.value})
}

func (h *header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.name, &h.value})
}

// The admin client is recreated for every command: an older one would return metadata from its cache.
type driver struct {
	bootstrap string
	admin     *kadm.Client
}

func main() {
	commands := bufio.NewReader(os.Stdin)
	responses := json.NewEncoder(os.Stdout)
	opened := newSessions(os.Args[1])
	for {
		line, err := commands.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := responses.Encode(respond(os.Args[1], opened, line)); err != nil {
			return
		}
	}
}

func respond(bootstrap string, opened *sessions, line []byte) map[string]any {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return map[string]any{"error": "BAD_COMMAND", "message": err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.TimeoutMs)*time.Millisecond)
	defer cancel()
	result, err, done := opened.call(ctx, &c)
	if !done {
		result, err = callOnce(ctx, bootstrap, &c)
	}
	if err != nil {
		return map[string]any{"error": errorName(err), "message": err.Error()}
	}
	return map[string]any{"result": result}
}

func callOnce(ctx context.Context, bootstrap string, c *command) (any, error) {
	if c.Call == "secured_round_trip" {
		return securedRoundTrip(ctx, c)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	d := &driver{bootstrap: bootstrap, admin: kadm.NewClient(client)}
	if strings.HasPrefix(c.Call, "group_") {
		return callGroups(ctx, d.admin, c)
	}
	return d.call(ctx, c)
}

func errorName(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return "FRANZ_GO"
}

func (d *driver) call(ctx context.Context, c *command) (any, error) {
	switch c.Call {
	case "create_topic":
		return d.createTopic(ctx, c)
	case "delete_topic":
		response, err := d.admin.DeleteTopic(ctx, c.Topic)
		return nil, either(err, response.Err)
	case "create_partitions":
		responses, err := d.admin.UpdatePartitions(ctx, c.Total, c.Topic)
		return nil, either(err, responses[c.Topic].Err)
	case "partition_count":
		topics, err := d.admin.ListTopics(ctx)
		return len(topics[c.Topic].Partitions), err
	case "produce":
		return d.produce(ctx, c)
	case "consume":
		return d.consume(ctx, c)
	case "list_offset":
		return d.listOffset(ctx, c)
	case "delete_records":
		return d.deleteRecords(ctx, c)
	case "describe_config":
		return d.describeConfig(ctx, c)
	case "alter_config":
		return d.alterConfig(ctx, c)
	}
	return nil, fmt.Errorf("no such call: %s", c.Call)
}

func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func (d *driver) createTopic(ctx context.Context, c *command) (any, error) {
	config := make(map[string]*string)
	for name, value := range c.Config {
		config[name] = kadm.StringPtr(value)
	}
	response, err := d.admin.CreateTopic(ctx, c.Partitions, -1, config, c.Topic)
	return nil, either(err, response.Err)
}

func (d *driver) produce(ctx context.Context, c *command) (any, error) {
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(d.bootstrap, ",")...),
		kgo.RequiredAcks(acks[c.Acks]),
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.ProducerBatchMaxBytes(c.MaxBytes),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AllowAutoTopicCreation(),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(c.Records))
	for i := range c.Records {
		records[i] = toSend(c.Topic, &c.Records[i])
	}
	results := client.ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(records))
	for i, sent := range records {
		offsets[i] = sent.Offset
	}
	return offsets, nil
}

func toSend(topic string, r *record) *kgo.Record {
	sent := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
	if r.Timestamp != nil {
		sent.Timestamp = time.UnixMilli(*r.Timestamp)
	}
	for _, h := range r.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
	}
	return sent
}

func (d *driver) consume(ctx context.Context, c *command) (any, error) {
	resets := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}
	starts := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(),
		"offset": kgo.NewOffset().At(c.Value), "timestamp": kgo.NewOffset().AfterMilli(c.Value),
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(d.bootstrap, ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: starts[c.Start]}}),
		kgo.ConsumeResetOffset(resets[c.Reset]),
		kgo.FetchMaxPartitionBytes(c.MaxBytes),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	received := []record{}
	for len(received) < c.Count {
		fetches := client.PollRecords(ctx, c.Count-len(received))
		if err := fetches.Err(); err != nil {
			if ctx.Err() != nil {
				return received, nil
			}
			return nil, err
		}
		for _, r := range fetches.Records() {
			received = append(received, asReceived(r))
		}
	}
	return received, nil
}

func asReceived(r *kgo.Record) record {
	timestamp := r.Timestamp.UnixMilli()
	described := record{Offset: r.Offset, Timestamp: &timestamp, Key: r.Key, Value: r.Value, Headers: []header{}}
	for _, h := range r.Headers {
		described.Headers = append(described.Headers, header{h.Key, h.Value})
	}
	return described
}

func (d *driver) listOffset(ctx context.Context, c *command) (any, error) {
	var listed kadm.ListedOffsets
	var err error
	switch c.Position {
	case "earliest":
		listed, err = d.admin.ListStartOffsets(ctx, c.Topic)
	case "latest":
		listed, err = d.admin.ListEndOffsets(ctx, c.Topic)
	case "max_timestamp":
		listed, err = d.admin.ListMaxTimestampOffsets(ctx, c.Topic)
	default:
		listed, err = d.admin.ListOffsetsAfterMilli(ctx, c.Value, c.Topic)
	}
	found := listed[c.Topic][c.Partition]
	if c.Position == "timestamp" && found.Timestamp == -1 {
		return -1, either(err, found.Err) // kadm puts the end offset where the broker found no record
	}
	return found.Offset, either(err, found.Err)
}

func (d *driver) deleteRecords(ctx context.Context, c *command) (any, error) {
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: c.Topic, Partition: c.Partition, At: c.BeforeOffset})
	responses, err := d.admin.DeleteRecords(ctx, offsets)
	response := responses[c.Topic][c.Partition]
	return response.LowWatermark, either(err, response.Err)
}

func (d *driver) describeConfig(ctx context.Context, c *command) (any, error) {
	described, err := d.admin.DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	resource, err := described.On(c.Topic, nil)
	if err := either(err, resource.Err); err != nil {
		return nil, err
	}
	values := make(map[string]*string)
	for _, config := range resource.Configs {
		values[config.Key] = config.Value
	}
	return values, nil
}

func (d *driver) alterConfig(ctx context.Context, c *command) (any, error) {
	var changes []kadm.AlterConfig
	for name, value := range c.Config {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	responses, err := d.admin.AlterTopicConfigs(ctx, changes, c.Topic)
	if err != nil {
		return nil, err
	}
	response, err := responses.On(c.Topic, nil)
	return nil, either(err, response.Err)
}
