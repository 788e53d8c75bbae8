package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type consumerOptions struct {
	Group                string   `json:"group"`
	Topics               []string `json:"topics"`
	Pattern              *string  `json:"pattern"`
	Protocol             string   `json:"protocol"`
	Assignor             *string  `json:"assignor"`
	InstanceID           *string  `json:"instance_id"`
	Reset                string   `json:"reset"`
	AutoCommit           bool     `json:"auto_commit"`
	Isolation            string   `json:"isolation"`
	SessionTimeoutMs     int64    `json:"session_timeout_ms"`
	HeartbeatIntervalMs  int64    `json:"heartbeat_interval_ms"`
	MetadataMaxAgeMs     int64    `json:"metadata_max_age_ms"`
	AutoCommitIntervalMs int64    `json:"auto_commit_interval_ms"`
}

func milliseconds(count int64) time.Duration {
	return time.Duration(count) * time.Millisecond
}

func (o *consumerOptions) of(bootstrap string) []kgo.Opt {
	starts := map[string]kgo.Offset{"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd()}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeStartOffset(starts[o.Reset]),
		kgo.SessionTimeout(milliseconds(o.SessionTimeoutMs)),
		kgo.HeartbeatInterval(milliseconds(o.HeartbeatIntervalMs)),
		kgo.MetadataMinAge(milliseconds(o.MetadataMaxAgeMs / 2)),
		kgo.MetadataMaxAge(milliseconds(o.MetadataMaxAgeMs)),
	}
	if o.Pattern != nil {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(*o.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(o.Topics...))
	}
	if o.Isolation == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.InstanceID != nil {
		options = append(options, kgo.InstanceID(*o.InstanceID))
	}
	return append(options, o.balancing()...)
}

func (o *consumerOptions) balancing() []kgo.Opt {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "uniform": kgo.StickyBalancer(),
	}
	switch {
	case o.Protocol == "consumer" && o.Assignor == nil:
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
	case o.Protocol == "consumer":
		return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(balancers[*o.Assignor])}
	case o.Assignor != nil:
		return []kgo.Opt{kgo.Balancers(balancers[*o.Assignor])}
	}
	return nil
}

// A place is [topic, partition] in JSON; a row is [topic, partition, offset] with a value or metadata behind it.
type place struct {
	topic     string
	partition int32
}

func (p place) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.topic, p.partition})
}

func (p *place) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&p.topic, &p.partition})
}

type row struct {
	topic     string
	partition int32
	offset    int64
	text      string
}

func (r row) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{r.topic, r.partition, r.offset, r.text})
}

func (r *row) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.topic, &r.partition, &r.offset, &r.text})
}

// A consumer is a member of a group, polled by a goroutine.
type consumer struct {
	group  string
	client *kgo.Client
	polled sync.WaitGroup
	stop   context.CancelFunc

	mu         sync.Mutex
	assignment map[place]bool
	rebalances int
	records    []row
	err        error
}

func openConsumer(bootstrap string, o *consumerOptions) (*consumer, error) {
	c := &consumer{group: o.Group, assignment: make(map[place]bool)}
	options := append(o.of(bootstrap),
		kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.revoked))
	if o.AutoCommit {
		options = append(options, kgo.AutoCommitInterval(milliseconds(o.AutoCommitIntervalMs)))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	c.client = client
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.polled.Add(1)
	go c.poll(ctx)
	return c, nil
}

func (c *consumer) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	c.change(partitions, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebalances++
}

func (c *consumer) revoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	c.change(partitions, false)
}

func (c *consumer) change(partitions map[string][]int32, owned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			if owned {
				c.assignment[place{topic, number}] = true
			} else {
				delete(c.assignment, place{topic, number})
			}
		}
	}
}

func (c *consumer) poll(ctx context.Context) {
	defer c.polled.Done()
	for ctx.Err() == nil {
		fetches := c.client.PollFetches(ctx)
		c.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			c.records = append(c.records, row{r.Topic, r.Partition, r.Offset, string(r.Value)})
		})
		c.err = either(c.err, fatal(fetches))
		c.mu.Unlock()
	}
}

// fatal is the error of the broker that ends a consumer; any other error of a poll, such as a lost connection, passes.
func fatal(fetches kgo.Fetches) error {
	var found error
	fetches.EachError(func(_ string, _ int32, err error) {
		var known *kerr.Error
		if errors.As(err, &known) && !known.Retriable {
			found = err
		}
	})
	return found
}

func (c *consumer) look(after int) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	assignment := []place{}
	for each := range c.assignment {
		assignment = append(assignment, each)
	}
	seen := map[string]any{"assignment": assignment, "rebalances": c.rebalances, "error": nil}
	seen["records"] = append([]row{}, c.records[after:]...)
	if c.err != nil {
		seen["error"] = errorName(c.err)
	}
	return seen
}

func (c *consumer) commit(ctx context.Context, offsets []row, wait bool) error {
	uncommitted := c.client.UncommittedOffsets()
	if offsets != nil {
		uncommitted = epochOffsets(offsets)
		ctx = kgo.PreCommitFnContext(ctx, func(request *kmsg.OffsetCommitRequest) error {
			addMetadata(request, offsets)
			return nil
		})
	}
	if !wait {
		c.client.CommitOffsets(context.WithoutCancel(ctx), uncommitted, nil)
		return nil
	}
	var outcome error
	c.client.CommitOffsetsSync(ctx, uncommitted,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			outcome = err
			for _, topic := range response.Topics {
				for _, partition := range topic.Partitions {
					outcome = either(outcome, kerr.ErrorForCode(partition.ErrorCode))
				}
			}
		})
	return outcome
}

func epochOffsets(offsets []row) map[string]map[int32]kgo.EpochOffset {
	wanted := make(map[string]map[int32]kgo.EpochOffset)
	for _, each := range offsets {
		if wanted[each.topic] == nil {
			wanted[each.topic] = make(map[int32]kgo.EpochOffset)
		}
		wanted[each.topic][each.partition] = kgo.EpochOffset{Epoch: -1, Offset: each.offset}
	}
	return wanted
}

func addMetadata(request *kmsg.OffsetCommitRequest, offsets []row) {
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			partition := &topic.Partitions[j]
			for k := range offsets {
				if offsets[k].topic == topic.Topic && offsets[k].partition == partition.Partition {
					partition.Metadata = &offsets[k].text
				}
			}
		}
	}
}

func (c *consumer) committed(ctx context.Context, partitions []place) (any, error) {
	found := [][]any{}
	offsets, err := kadm.NewClient(c.client).FetchOffsets(ctx, c.group)
	for _, each := range partitions {
		if offset, ok := offsets.Lookup(each.topic, each.partition); ok {
			found = append(found, []any{each.topic, each.partition, offset.At})
		}
	}
	return found, either(err, offsets.Error())
}

func (c *consumer) seek(topic string, partition int32, offset int64) {
	c.client.SetOffsets(epochOffsets([]row{{topic, partition, offset, ""}}))
}

func (c *consumer) close() {
	c.stop()
	c.polled.Wait()
	c.client.Close()
}
