package check

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// submitRequest is the schema of what an adapter makes of an event.
var submitRequest = sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(protocol.SubmitRequest) })

// adapter holds an adapter to what the contract asks of it: events become
// requests to the kernel, and whatever it does, an operator does (kernel
// contracts, 5.5 and 5.9).
func (t *trial) adapter(ctx context.Context) error {
	a, err := t.host.call(ctx, t.request())
	if err != nil {
		return err
	}
	if t.held(a) {
		t.passage(a)
		return nil
	}
	ran := t.judge(runs, a.err)
	t.passage(a)
	t.asks(a)
	if !ran {
		return nil
	}
	t.expects(a)
	if below := a.below(); len(below) > 0 {
		t.tell(maps, Skip, "it writes outward, through %s", below[0].record.Operation)
		return nil
	}
	fits, err := submitRequest()
	if err != nil {
		return err
	}
	t.judge(maps, fits.Check(ctx, a.Data))
	return nil
}

// passage checks that an adapter neither wrote through a service nor asked for
// anything but operators: the host has refused both.
func (t *trial) passage(a answer) {
	for _, l := range a.entries {
		if e := l.record.Error; l.kind == plugin.EntryServiceRefused && e != nil && l.record.Parent == "" {
			t.tell(bypasses, Fail, "it went past them: %s", e.Message)
			return
		}
	}
	t.tell(bypasses, Pass, "")
}
