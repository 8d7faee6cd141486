package client

import (
	"context"
	"time"
)

// Start starts the background host of a data directory with a program, as for a session.
func Start(ctx context.Context, o Options, program string, wait time.Duration) (Host, error) {
	s := starter{Options: o, program: program, wait: wait}
	return s.reach(ctx)
}
