package host

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Stay returns what do says of a call, or how the call stands where ctx ends before: do goes on
// then. A call that is not on record by then, or has the key of an earlier one, has its answer
// from do, which is waited for so much longer. panicked is told of a panic of do.
func (c Calls) Stay(ctx context.Context, id string, longer time.Duration, panicked func(cause any, stack string), do func() (plugin.Result, error)) (plugin.Result, error) {
	type end struct {
		res plugin.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				panicked(cause, string(debug.Stack()))
				ended <- end{err: plugin.Errorf(plugin.CodeInternal, "%v", cause)}
			}
		}()
		res, err := do()
		ended <- end{res, err}
	}()
	standing := func() (plugin.Result, error) { return c.Standing(context.WithoutCancel(ctx), id) }
	told := func(e end) (plugin.Result, error) {
		if _, waits := e.err.(Unfinished); waits {
			return standing()
		}
		return e.res, e.err
	}
	select {
	case e := <-ended:
		return told(e)
	case <-ctx.Done():
	}
	select {
	case e := <-ended: // both at once
		return told(e)
	default:
	}
	res, err := standing()
	if plugin.CodeOf(err) != plugin.CodeNotFound {
		return res, err
	}
	late := time.NewTimer(longer)
	defer late.Stop()
	select {
	case e := <-ended:
		return told(e)
	case <-late.C:
		return standing()
	}
}
