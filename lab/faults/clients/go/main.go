// Command clients is a client in Go: it reads work as lines of JSON and answers each with one; what it is,
// lab/faults/clients/work.py says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const keys = 64

type work struct {
	Number        int     `json:"number"`
	Do            string  `json:"do"`
	Topic         string  `json:"topic"`
	Count         int     `json:"count"`
	Size          int     `json:"size"`
	Batched       *bool   `json:"batched"`
	BatchMessages *uint   `json:"batch_messages"`
	DelayS        float64 `json:"delay_s"`
	Rate          float64 `json:"rate"`
	Subscription  string  `json:"subscription"`
	Kind          string  `json:"kind"`
	Queue         *int    `json:"queue"`
	Acknowledge   string  `json:"acknowledge"`
	Most          *int    `json:"most"`
	PauseS        float64 `json:"pause_s"`
	EveryS        float64 `json:"every_s"`
	RedeliveryS   float64 `json:"redelivery_s"`
	LivesS        float64 `json:"lives_s"`
	Producers     int     `json:"producers"`
	Consumers     int     `json:"consumers"`
}

type answer struct {
	Number int     `json:"number"`
	Error  *string `json:"error"`
}

var kinds = map[string]pulsar.SubscriptionType{
	"Exclusive":  pulsar.Exclusive,
	"Shared":     pulsar.Shared,
	"Failover":   pulsar.Failover,
	"Key_Shared": pulsar.KeyShared,
}

func seconds(count float64) time.Duration {
	return time.Duration(count * float64(time.Second))
}

func connect() (pulsar.Client, error) {
	logger := logrus.New()
	logger.SetLevel(logrus.ErrorLevel)
	options := pulsar.ClientOptions{URL: os.Args[1], Logger: log.NewLoggerWithLogrus(logger)}
	if len(os.Args) > 2 && os.Args[2] != "" {
		options.Authentication = pulsar.NewAuthenticationToken(os.Args[2])
	}
	return pulsar.NewClient(options)
}

func producerOf(client pulsar.Client, w work) (pulsar.Producer, error) {
	options := pulsar.ProducerOptions{Topic: w.Topic}
	if w.Batched != nil {
		options.DisableBatching = !*w.Batched
	}
	if w.BatchMessages != nil {
		options.BatchingMaxMessages = *w.BatchMessages
	}
	return client.CreateProducer(options)
}

func message(w work, number int) *pulsar.ProducerMessage {
	made := &pulsar.ProducerMessage{Payload: make([]byte, w.Size), Key: fmt.Sprintf("key-%d", number%keys)}
	if w.DelayS > 0 {
		made.DeliverAfter = seconds(w.DelayS + float64(number))
	}
	return made
}

func send(client pulsar.Client, w work) error {
	producer, err := producerOf(client, w)
	if err != nil {
		return err
	}
	defer producer.Close()
	var open sync.WaitGroup
	var once sync.Once
	var refused error
	open.Add(w.Count)
	for number := 0; number < w.Count; number++ {
		producer.SendAsync(context.Background(), message(w, number),
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err != nil {
					once.Do(func() { refused = err })
				}
				open.Done()
			})
	}
	if err := producer.Flush(); err != nil {
		return err
	}
	open.Wait()
	return refused
}

func flow(producer pulsar.Producer, w work) {
	began, sent := time.Now(), 0
	for range time.Tick(100 * time.Millisecond) {
		for due := int(w.Rate * time.Since(began).Seconds()); sent < due; sent++ {
			producer.SendAsync(context.Background(), message(w, sent),
				func(pulsar.MessageID, *pulsar.ProducerMessage, error) {})
		}
	}
}

func subscribe(client pulsar.Client, w work) (pulsar.Consumer, error) {
	options := pulsar.ConsumerOptions{
		Topic:                       w.Topic,
		SubscriptionName:            w.Subscription,
		Type:                        kinds[w.Kind],
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		NackRedeliveryDelay:         seconds(w.RedeliveryS),
	}
	if w.Queue != nil {
		options.ReceiverQueueSize = *w.Queue
	}
	return client.Subscribe(options)
}

func take(consumer pulsar.Consumer, w work, until time.Time) {
	var held []pulsar.Message
	acknowledged, count := time.Now(), 0
	for until.IsZero() || time.Now().Before(until) {
		var got pulsar.Message
		if w.Most != nil && count >= *w.Most {
			time.Sleep(200 * time.Millisecond)
		} else {
			patience, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			got, _ = consumer.Receive(patience)
			cancel()
		}
		if time.Since(acknowledged) >= seconds(w.EveryS) {
			for _, each := range held {
				_ = consumer.Ack(each)
			}
			held, acknowledged = nil, time.Now()
		}
		if got == nil {
			continue
		}
		switch {
		case w.Acknowledge == "negatively", w.Acknowledge == "once-again" && got.RedeliveryCount() == 0:
			consumer.Nack(got)
		case w.Acknowledge == "later":
			held = append(held, got)
		case w.Acknowledge == "each", w.Acknowledge == "once-again", w.Acknowledge == "every-other" && count%2 == 1:
			_ = consumer.Ack(got)
		}
		count++
		time.Sleep(seconds(w.PauseS))
	}
}

func crashAgainAndAgain(w work) {
	for {
		until := time.Now().Add(seconds(w.LivesS))
		client, err := connect()
		if err != nil {
			continue
		}
		if consumer, err := subscribe(client, w); err == nil {
			take(consumer, w, until)
		}
		client.Close()
	}
}

func crowd(client pulsar.Client, w work) error {
	for number := 0; number < w.Producers; number++ {
		if _, err := client.CreateProducer(pulsar.ProducerOptions{Topic: w.Topic}); err != nil {
			return err
		}
	}
	one := 1
	for number := 0; number < w.Consumers; number++ {
		idle := work{Topic: w.Topic, Subscription: "s", Kind: "Shared", Queue: &one, RedeliveryS: 1}
		if _, err := subscribe(client, idle); err != nil {
			return err
		}
	}
	return nil
}

func carryOut(client pulsar.Client, w work) error {
	switch w.Do {
	case "Sending":
		return send(client, w)
	case "Flowing":
		producer, err := producerOf(client, w)
		if err == nil {
			go flow(producer, w)
		}
		return err
	case "Taking":
		if w.LivesS > 0 {
			go crashAgainAndAgain(w)
			return nil
		}
		consumer, err := subscribe(client, w)
		if err == nil {
			go take(consumer, w, time.Time{})
		}
		return err
	case "Crowd":
		return crowd(client, w)
	}
	return fmt.Errorf("no such work: %s", w.Do)
}

func main() {
	client, err := connect()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var writing sync.Mutex
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var told work
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			said := answer{Number: told.Number}
			if err := carryOut(client, told); err != nil {
				words := err.Error()
				said.Error = &words
			}
			writing.Lock()
			defer writing.Unlock()
			_ = answers.Encode(said)
		}()
	}
}
