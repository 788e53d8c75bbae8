package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

func openProducer(ctx context.Context, bootstrap, transactionalID string, timeoutMs int64) (*kgo.Client, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.TransactionalID(transactionalID),
		kgo.TransactionTimeout(milliseconds(timeoutMs)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	if _, _, err := client.ProducerID(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func sendValues(ctx context.Context, client *kgo.Client, topic string, partition int32, values []string) error {
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func endTransaction(ctx context.Context, client *kgo.Client, commit kgo.TransactionEndTry) error {
	if commit == kgo.TryCommit {
		if err := client.Flush(ctx); err != nil {
			return err
		}
	} else if err := client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	return client.EndTransaction(ctx, commit)
}

// A transformer writes each value that it reads, in upper case, to the same partition of another topic; what it has
// read and what it has written are committed in one transaction.
type transformer struct {
	target  string
	session *kgo.GroupTransactSession
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu        sync.Mutex
	committed int
	aborted   int
	err       error
}

func openTransformer(bootstrap string, c *command) (*transformer, error) {
	session, err := kgo.NewGroupTransactSession(append(c.of(bootstrap),
		kgo.TransactionalID(c.TransactionalID),
		kgo.TransactionTimeout(milliseconds(c.TransactionTimeoutMs)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &transformer{target: c.Target, session: session, stop: cancel}
	t.ended.Add(1)
	go t.run(ctx, c.AbortFirst)
	return t, nil
}

func (t *transformer) run(ctx context.Context, abortNext bool) {
	defer t.ended.Done()
	for ctx.Err() == nil {
		fetches := t.session.PollFetches(ctx)
		err := fatal(fetches)
		if err == nil && fetches.NumRecords() > 0 {
			err = t.transform(fetches, abortNext)
			abortNext = false
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.mu.Lock()
			t.err = err
			t.mu.Unlock()
			return
		}
	}
}

func (t *transformer) transform(fetches kgo.Fetches, abort bool) error {
	if err := t.session.Begin(); err != nil {
		return err
	}
	ctx := context.Background()
	fetches.EachRecord(func(r *kgo.Record) {
		value := []byte(strings.ToUpper(string(r.Value)))
		t.session.Produce(ctx, &kgo.Record{Topic: t.target, Partition: r.Partition, Value: value}, nil)
	})
	try := kgo.TryCommit
	if abort {
		try = kgo.TryAbort
	}
	committed, err := t.session.End(ctx, try)
	t.mu.Lock()
	defer t.mu.Unlock()
	if committed {
		t.committed++
	} else {
		t.aborted++
	}
	return err
}

func (t *transformer) look() any {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]any{"committed": t.committed, "aborted": t.aborted, "error": nil}
	if t.err != nil {
		seen["error"] = t.err.Error()
	}
	return seen
}

func (t *transformer) close() {
	t.stop()
	t.ended.Wait()
	t.session.Close()
}
