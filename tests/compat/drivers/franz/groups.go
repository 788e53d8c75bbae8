package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func listGroups(ctx context.Context, admin *kadm.Client) (any, error) {
	listed, err := admin.ListGroups(ctx)
	states := [][]any{}
	for _, group := range listed {
		states = append(states, []any{group.Group, group.State})
	}
	return states, err
}

type member struct {
	ClientID   string  `json:"client_id"`
	InstanceID *string `json:"instance_id"`
	Assignment []place `json:"assignment"`
}

type description struct {
	State    string   `json:"state"`
	Assignor string   `json:"assignor"`
	Members  []member `json:"members"`
}

// The broker knows a group under one protocol only, and responds to the API of the other with GROUP_ID_NOT_FOUND.
func describeGroup(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	described, err := describeConsumerGroup(ctx, admin, group)
	if errors.Is(err, kerr.GroupIDNotFound) || errors.Is(err, kerr.UnsupportedVersion) {
		return describeClassicGroup(ctx, admin, group)
	}
	return described, err
}

func describeConsumerGroup(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	groups, err := admin.DescribeConsumerGroups(ctx, group)
	found := groups[group]
	if err := either(err, found.Err); err != nil {
		return nil, err
	}
	described := description{found.State, found.AssignorName, []member{}}
	for _, each := range found.Members {
		assignment := []place{}
		each.Assignment.Each(func(topic string, partition int32) {
			assignment = append(assignment, place{topic, partition})
		})
		described.Members = append(described.Members, member{each.ClientID, each.InstanceID, assignment})
	}
	return described, nil
}

func describeClassicGroup(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	groups, err := admin.DescribeGroups(ctx, group)
	found := groups[group]
	if err := either(err, found.Err); err != nil {
		return nil, err
	}
	described := description{found.State, found.Protocol, []member{}}
	for _, each := range found.Members {
		assignment := []place{}
		if decoded, ok := each.Assigned.AsConsumer(); ok {
			for _, topic := range decoded.Topics {
				for _, partition := range topic.Partitions {
					assignment = append(assignment, place{topic.Topic, partition})
				}
			}
		}
		described.Members = append(described.Members, member{each.ClientID, each.InstanceID, assignment})
	}
	return described, nil
}

func groupOffsets(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	offsets, err := admin.FetchOffsets(ctx, group)
	found := []row{}
	offsets.Each(func(o kadm.OffsetResponse) {
		found = append(found, row{o.Topic, o.Partition, o.At, o.Metadata})
	})
	return found, either(err, offsets.Error())
}

func setGroupOffsets(ctx context.Context, admin *kadm.Client, group string, offsets []row) error {
	var wanted kadm.Offsets
	for _, each := range offsets {
		wanted.Add(kadm.Offset{
			Topic: each.topic, Partition: each.partition, At: each.offset, LeaderEpoch: -1, Metadata: each.text,
		})
	}
	outcome, err := admin.CommitOffsets(ctx, group, wanted)
	return either(err, outcome.Error())
}

func deleteGroupOffsets(ctx context.Context, admin *kadm.Client, group string, partitions []place) error {
	var wanted kadm.TopicsSet
	for _, each := range partitions {
		wanted.Add(each.topic, each.partition)
	}
	outcome, err := admin.DeleteOffsets(ctx, group, wanted)
	return either(err, outcome.Error())
}
