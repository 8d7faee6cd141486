package check

import (
	"context"
)

// tool holds a tool to what the contract asks of it: pure, and so fit to be
// answered from a cache (kernel contracts, 5.9).
func (t *trial) tool(ctx context.Context) error {
	first, err := t.host.call(ctx, t.request())
	if err != nil {
		return err
	}
	if t.held(first) {
		return nil
	}
	if !t.judge(runs, first.err) {
		t.blame(first)
		return nil
	}
	t.expects(first)
	t.asks(first)
	if undetermined(first) || t.op.NoCache {
		t.tell(pure, Skip, "it says that it need not")
		return nil
	}
	second, err := t.host.call(ctx, t.request())
	if err != nil {
		return err
	}
	switch {
	case second.err != nil:
		t.tell(pure, Fail, "%s", messageOf(second.err))
		return nil
	case equal(first.Data, second.Data):
		t.tell(pure, Pass, "")
	case readsFiles(t.input): // such results are not reused
		t.tell(pure, Warn, "two calls with one input gave two results")
	default:
		t.tell(pure, Fail, "two calls with one input gave two results; say nondeterminism in the result, or no_cache: true in the manifest")
	}
	reuse := t.request()
	reuse.cached = true
	third, err := t.host.call(ctx, reuse)
	switch {
	case err != nil:
		return err
	case third.err != nil:
		t.tell(reused, Fail, "%s", messageOf(third.err))
	case !third.Cached:
		t.tell(reused, Skip, "its answers are not kept: it asks for services, reads files, or answers too much")
	case !equal(third.Data, second.Data):
		t.tell(reused, Fail, "the answer that is kept is not the one it gives now")
	default:
		t.tell(reused, Pass, "")
	}
	return nil
}

// blame reports what a call that failed asked for in vain: that may be why.
func (t *trial) blame(a answer) {
	for _, l := range a.entries {
		if l.record.Error != nil && l.kind == "service.refused" {
			t.asks(a)
			return
		}
	}
}
