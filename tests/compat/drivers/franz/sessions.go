package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What was opened and not closed, by number.
type sessions struct {
	bootstrap    string
	last         int
	consumers    map[int]*consumer
	producers    map[int]*kgo.Client
	transformers map[int]*transformer
}

func newSessions(bootstrap string) *sessions {
	return &sessions{
		bootstrap:    bootstrap,
		consumers:    make(map[int]*consumer),
		producers:    make(map[int]*kgo.Client),
		transformers: make(map[int]*transformer),
	}
}

// call runs a command about consumers, producers and transformers; the last result says whether it was one.
func (s *sessions) call(ctx context.Context, c *command) (any, error, bool) {
	subject, verb, _ := strings.Cut(c.Call, "_")
	var result any
	var err error
	switch subject {
	case "consumer":
		result, err = s.callConsumer(ctx, c, verb)
	case "producer":
		result, err = s.callProducer(ctx, c, verb)
	case "transformer":
		result, err = s.callTransformer(c, verb)
	default:
		return nil, nil, false
	}
	return result, err, true
}

func (s *sessions) callConsumer(ctx context.Context, c *command, verb string) (any, error) {
	if verb == "open" {
		opened, err := openConsumer(s.bootstrap, &c.consumerOptions)
		if err != nil {
			return nil, err
		}
		s.last++
		s.consumers[s.last] = opened
		return s.last, nil
	}
	consumer := s.consumers[c.Consumer]
	switch verb {
	case "look":
		return consumer.look(c.After), nil
	case "commit":
		return nil, consumer.commit(ctx, c.Offsets, c.Wait)
	case "committed":
		return consumer.committed(ctx, c.Places)
	case "seek":
		consumer.seek(c.Topic, c.Partition, c.Offset)
	case "close":
		delete(s.consumers, c.Consumer)
		consumer.close()
	default:
		return nil, fmt.Errorf("no such call: %s", c.Call)
	}
	return nil, nil
}

func (s *sessions) callProducer(ctx context.Context, c *command, verb string) (any, error) {
	if verb == "open" {
		opened, err := openProducer(ctx, s.bootstrap, c.TransactionalID, c.TransactionTimeoutMs)
		if err != nil {
			return nil, err
		}
		s.last++
		s.producers[s.last] = opened
		return s.last, nil
	}
	producer := s.producers[c.Producer]
	switch verb {
	case "begin":
		return nil, producer.BeginTransaction()
	case "send":
		return nil, sendValues(ctx, producer, c.Topic, c.Partition, c.Values)
	case "commit":
		return nil, endTransaction(ctx, producer, kgo.TryCommit)
	case "abort":
		return nil, endTransaction(ctx, producer, kgo.TryAbort)
	case "close":
		delete(s.producers, c.Producer)
		producer.Close()
	default:
		return nil, fmt.Errorf("no such call: %s", c.Call)
	}
	return nil, nil
}

func (s *sessions) callTransformer(c *command, verb string) (any, error) {
	switch verb {
	case "open":
		opened, err := openTransformer(s.bootstrap, c)
		if err != nil {
			return nil, err
		}
		s.last++
		s.transformers[s.last] = opened
		return s.last, nil
	case "look":
		return s.transformers[c.Transformer].look(), nil
	case "close":
		closing := s.transformers[c.Transformer]
		delete(s.transformers, c.Transformer)
		closing.close()
		return nil, nil
	}
	return nil, fmt.Errorf("no such call: %s", c.Call)
}

func callGroups(ctx context.Context, admin *kadm.Client, c *command) (any, error) {
	switch c.Call {
	case "group_list":
		return listGroups(ctx, admin)
	case "group_describe":
		return describeGroup(ctx, admin, c.Group)
	case "group_delete":
		response, err := admin.DeleteGroup(ctx, c.Group)
		return nil, either(err, response.Err)
	case "group_offsets":
		return groupOffsets(ctx, admin, c.Group)
	case "group_set_offsets":
		return nil, setGroupOffsets(ctx, admin, c.Group, c.Offsets)
	case "group_delete_offsets":
		return nil, deleteGroupOffsets(ctx, admin, c.Group, c.Places)
	}
	return nil, fmt.Errorf("no such call: %s", c.Call)
}
