package service

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
)

// minRate is how many bytes a second have to come in of a body that others wait for.
const minRate = 128 << 10

// An intake reads the body of an answer in the memory that there is for answers to
// plugins. It begins with what needs no room; what is larger waits for its turn, and
// the other side with it.
type intake struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.Closer // what is closed to end a read that does not get on
	most   int       // bytes of an answer as the plugin gets it

	got     atomic.Int64
	refused error // there was no room, or it was taken away
}

// read returns all of a reader that has so many bytes at most. An error of the
// reader's comes with what was read before.
func (in *intake) read(r io.Reader, whole int) ([]byte, error) {
	room := budget.AnswerOf(in.ctx)
	defer room.Overdue(nil)
	data := make([]byte, 0, min(whole, budget.AnswerFree)+1)
	data, err := in.fill(r, data)
	for err == nil && len(data) == cap(data) {
		// An unknown size is tried in a middle one first, which many have room for.
		next := whole + 1
		if middle := budget.AnswerSmall / 4; cap(data) < middle && whole > budget.AnswerSmall {
			next = middle
		}
		if next <= cap(data) {
			break
		}
		if in.refused = in.wait(room, next); in.refused != nil {
			return nil, in.refused
		}
		data, err = in.fill(r, append(make([]byte, 0, next), data...))
	}
	if err == io.EOF {
		err = nil
	}
	if cause := context.Cause(in.ctx); err != nil && cause != nil {
		in.refused = cause
	}
	return data, err
}

// fill reads until the buffer is full or there is no more.
func (in *intake) fill(r io.Reader, data []byte) ([]byte, error) {
	for len(data) < cap(data) {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		in.got.Add(int64(n))
		if err != nil {
			return data, err
		}
	}
	return data, nil
}

// wait takes room for a buffer of so many bytes with what the plugin gets of it, and
// has a body that does not get on ended while others wait for the room.
func (in *intake) wait(room *budget.Answer, buffer int) error {
	encoded := min(2*buffer, max(in.most, buffer/4)+4<<10)
	if buffer > budget.AnswerSmall/2 {
		encoded = in.most
	}
	if err := room.Take(in.ctx, buffer+encoded); err != nil {
		return noRoom(fetchName, err)
	}
	var mu sync.Mutex // guards the rest
	last, at := in.got.Load(), time.Now()
	room.Overdue(func() {
		mu.Lock()
		defer mu.Unlock()
		now, took := in.got.Load(), time.Since(at)
		if float64(now-last) < minRate*took.Seconds() {
			in.cancel(&plugin.Error{Code: plugin.CodeOverloaded, Retryable: true, RetryAfter: time.Second,
				Message: "the answer came in too slowly while others waited for the memory that it takes"})
			_ = in.body.Close()
		}
		last, at = now, time.Now()
	})
	return nil
}
