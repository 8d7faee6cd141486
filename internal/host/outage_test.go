package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// An outage of the store is unavailable to callers, however it is wrapped, and says when to come
// again; every other error keeps its code.
func TestAnOutageIsUnavailable(t *testing.T) {
	t.Parallel()
	cause := errors.New("dial tcp 10.0.0.1:5432: connection refused")
	for name, c := range map[string]struct {
		err   error
		code  plugin.Code
		again bool
	}{
		"away":      {fmt.Errorf("%w: %w", store.ErrAway, cause), plugin.CodeUnavailable, true},
		"waited":    {fmt.Errorf("%w: %w; %w", store.ErrAway, cause, context.DeadlineExceeded), plugin.CodeUnavailable, true},
		"timeout":   {fmt.Errorf("asking a plugin: %w", context.DeadlineExceeded), plugin.CodeTimeout, false},
		"wrapped":   {plugin.Errorf(plugin.CodeInternal, "call 1 could not be recorded: %w", fmt.Errorf("%w: %w", store.ErrAway, cause)), plugin.CodeUnavailable, true},
		"full":      {fmt.Errorf("%w: %w", store.ErrFull, cause), plugin.CodeUnavailable, true},
		"failed":    {fmt.Errorf("%w: %w", store.ErrFailed, cause), plugin.CodeUnavailable, true},
		"closed":    {store.ErrClosed, plugin.CodeUnavailable, true},
		"lapsed":    {store.ErrLapsed, plugin.CodeUnavailable, true},
		"uncertain": {fmt.Errorf("%w: %w", store.ErrUncertain, fmt.Errorf("%w: %w", store.ErrFailed, cause)), plugin.CodeUnavailable, false},
		"unknown":   {plugin.Errorf(plugin.CodeOutcomeUnknown, "call 1 may have had its effect: %w", store.ErrFailed), plugin.CodeOutcomeUnknown, false},
		"no outage": {cause, plugin.CodeInternal, false},
		"tampered":  {store.ErrTampered, plugin.CodeInternal, false},
	} {
		e := host.AsError(c.err)
		if e.Code != c.code || (e.RetryAfter > 0) != c.again || e.Retryable != c.again {
			t.Errorf("%s: %+v, want %s, to be sent again: %t", name, e, c.code, c.again)
		}
		if e.Code == plugin.CodeUnavailable && !errors.Is(e, c.err) {
			t.Errorf("%s: the cause is lost for the log", name)
		}
	}
	if e := host.AsError(nil); e != nil {
		t.Errorf("no error is %v", e)
	}
}
