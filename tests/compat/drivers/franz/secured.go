package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// How a client gets in at a secured listener. Files are PEM; a bearer's password is its token.
type login struct {
	Servers     string `json:"servers"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
}

// Writes the values to the first partition of a topic, and reads as many from its beginning.
func securedRoundTrip(ctx context.Context, c *command) (any, error) {
	options, err := c.login.options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: {0: kgo.NewOffset().AtStart()}}),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	if err := sendValues(ctx, client, c.Topic, 0, c.Values); err != nil {
		return nil, err
	}
	received := []string{}
	for len(received) < len(c.Values) {
		fetches := client.PollRecords(ctx, len(c.Values)-len(received))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, r := range fetches.Records() {
			received = append(received, string(r.Value))
		}
	}
	return received, nil
}

func (l *login) options() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(l.Servers), kgo.RetryTimeout(5 * time.Second)}
	if l.CA != "" {
		config, err := l.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if l.Mechanism != "" {
		mechanism, err := l.sasl()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func (l *login) tls() (*tls.Config, error) {
	authority, err := os.ReadFile(l.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, errors.New("the authority's file has no certificate")
	}
	if l.Certificate != "" {
		own, err := tls.LoadX509KeyPair(l.Certificate, l.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

func (l *login) sasl() (sasl.Mechanism, error) {
	switch l.Mechanism {
	case "PLAIN":
		return plain.Auth{User: l.User, Pass: l.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: l.Password}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("no such mechanism: %s", l.Mechanism)
}
