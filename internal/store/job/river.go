package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// A queue is an [engine]: River with the transactions of one kind of database.
type queue[Tx any] struct {
	driver riverdriver.Driver[Tx]
	config river.Config // what inserting and working have in common
	shut   func()

	mu     sync.Mutex // guards client
	client *river.Client[Tx]
}

// newQueue returns a queue that inserts, on a database of the right schema.
func newQueue[Tx any](driver riverdriver.Driver[Tx], config river.Config, shut func()) (*queue[Tx], error) {
	client, err := river.NewClient(driver, &config)
	if err != nil {
		return nil, err
	}
	return &queue[Tx]{driver: driver, config: config, shut: shut, client: client}, nil
}

// insert implements [engine].
func (q *queue[Tx]) insert(ctx context.Context, w wake, opts *river.InsertOpts) error {
	q.mu.Lock()
	client := q.client
	q.mu.Unlock()
	if _, err := client.Insert(ctx, w, opts); err != nil {
		return fmt.Errorf("queueing a wake-up of %s %s: %w", w.What, w.ID, err)
	}
	return nil
}

// work implements [engine].
func (q *queue[Tx]) work(ctx context.Context, workers int, handle Handle) error {
	c := q.config
	c.Workers = river.NewWorkers()
	river.AddWorker(c.Workers, &handler{handle: handle, log: c.Logger})
	c.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
	c.JobTimeout, c.RescueStuckJobsAfter = longest, longest+time.Hour
	c.CompletedJobRetentionPeriod, c.DiscardedJobRetentionPeriod, c.CancelledJobRetentionPeriod = keep, keep, keep
	client, err := river.NewClient(q.driver, &c)
	if err != nil {
		return err
	}
	// Its context would end what is being handled too.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting to work on the queue: %w", err)
	}
	// A client that works hears of its own inserts at once.
	inserting := q.swap(client)
	<-ctx.Done()
	q.swap(inserting)
	return client.Stop(context.WithoutCancel(ctx))
}

func (q *queue[Tx]) swap(client *river.Client[Tx]) (before *river.Client[Tx]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, q.client = q.client, client
	return before
}

// close implements [engine].
func (q *queue[Tx]) close() { q.shut() }

// A handler is what River runs for each wake-up.
type handler struct {
	river.WorkerDefaults[wake]
	handle Handle
	log    *slog.Logger
}

// Work implements river.Worker. A wake-up has one attempt, so that for River
// each of them succeeds.
func (h *handler) Work(ctx context.Context, j *river.Job[wake]) error {
	if err := h.handle(ctx, j.Args.What, j.Args.Tenant, j.Args.ID); err != nil {
		h.log.Warn("what was woken failed", "kind", j.Args.What, "tenant", j.Args.Tenant, "id", j.Args.ID, "cause", err.Error())
	}
	return nil
}

// upToDate reports whether the database has River's newest schema.
func upToDate[Tx any](ctx context.Context, m *rivermigrate.Migrator[Tx]) (bool, error) {
	have, err := m.ExistingVersions(ctx)
	return len(have) == len(m.AllVersions()), err
}

// migrate brings the database to River's newest schema, under a lock.
func migrate[Tx any](ctx context.Context, driver riverdriver.Driver[Tx], schema string, log *slog.Logger, lock func() (unlock func(), err error)) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: log, Schema: schema})
	if err != nil {
		return err
	}
	if done, err := upToDate(ctx, m); done || err != nil {
		return err
	}
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := upToDate(ctx, m); done || err != nil { // another process did it
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// within runs a function that may hang, for so long.
func within(patience time.Duration, do func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return errors.New("it did not end in time")
	}
}
