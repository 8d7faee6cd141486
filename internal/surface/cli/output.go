package cli

import (
	"fmt"
	"io"
	"sync"
)

// An output is standard output. A command whose text did not get there has failed,
// whatever it found.
type output struct {
	io.Writer
	mu     sync.Mutex
	failed error // the first
}

// Unwrap returns what it writes to.
func (o *output) Unwrap() io.Writer { return o.Writer }

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.failed == nil {
			o.failed = fmt.Errorf("writing to standard output: %w", err)
		}
	}
	return n, err
}

func (o *output) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}
