package client

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// KeyHeader is the header that has the idempotency key of a request.
const KeyHeader = "Idempotency-Key"

// How often, and after what pause, a request is sent whose answer was lost.
const (
	attempts   = 3
	repeatWait = 200 * time.Millisecond
)

// repeat sends a request until it is answered: a request with an idempotency key whose answer was
// lost is sent again under that key, so that its effect happens once. Without a key it is sent
// once. The error is that of the first attempt if the host cannot be reached any more.
func repeat(ctx context.Context, key string, send func() error) error {
	var first error
	for n := 1; ; n++ {
		err := send()
		switch {
		case first != nil && unsent(err):
			return first
		case key == "" || n == attempts || !Gone(err) || unsent(err) || ctx.Err() != nil:
			return err
		}
		if first == nil {
			first = err
		}
		host.Pause(ctx, time.Duration(n)*repeatWait)
	}
}

// unsent reports whether a request failed before anything of it was sent.
func unsent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}
