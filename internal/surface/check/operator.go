package check

import (
	"context"
	"fmt"
	"reflect"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/plugin"
)

// operator holds an operator to what the contract asks of it: one execution for
// one key, permissions, disclosure, declared effects (kernel contracts, 5.9).
func (t *trial) operator(ctx context.Context) error {
	if err := t.permissions(ctx); err != nil {
		return err
	}
	keyed := t.request()
	keyed.key = fmt.Sprintf("check-%d-one", t.host.calls) // each example has its own
	first, err := t.host.call(ctx, keyed)
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
	if first.Status != plugin.Succeeded {
		t.tell(idempotent, Skip, "it goes on by itself, and is %s", first.Status)
		return nil
	}
	t.expects(first)
	t.asks(first)
	again, err := t.host.call(ctx, keyed)
	if err != nil {
		return err
	}
	t.repeated(first, again)
	keyed.key = fmt.Sprintf("check-%d-two", t.host.calls)
	other, err := t.host.call(ctx, keyed)
	if err != nil {
		return err
	}
	switch {
	case other.err != nil:
		t.tell(discloses, Skip, "a second run with another key fails: %s", messageOf(other.err))
	case equal(first.Data, other.Data), undetermined(first), undetermined(other):
		t.tell(discloses, Pass, "")
	default:
		t.tell(discloses, Fail, "at /nondeterminism: two runs with one input gave two results, and neither says is_nondeterministic: true")
	}
	return nil
}

// repeated holds the second answer to a key against the first.
func (t *trial) repeated(first, again answer) {
	switch {
	case again.err != nil:
		t.tell(idempotent, Fail, "the second call with the key failed: %s", messageOf(again.err))
	case !again.Replayed || again.count(plugin.EntryCallStarted) > 0:
		t.tell(idempotent, Fail, "the second call with the key ran it again")
	case !equal(first.Data, again.Data) || first.CallID != again.CallID || !reflect.DeepEqual(first.Artifacts, again.Artifacts):
		t.tell(idempotent, Fail, "at /data: the second call with the key gave another result")
	default:
		t.tell(idempotent, Pass, "")
	}
}

// permissions checks that who lacks the operator's permissions is refused: by
// the host, and by the operator where the host lets the call pass (5.3.4, E:
// "even if Kernel already did").
func (t *trial) permissions(ctx context.Context) error {
	if len(t.op.Permissions) == 0 {
		t.tell(scoped, Skip, "it asks for no permissions")
		return nil
	}
	bare := t.request()
	bare.scopes = []string{}
	refused, err := t.host.call(ctx, bare)
	if err != nil {
		return err
	}
	switch code := plugin.CodeOf(refused.err); {
	case code == plugin.CodeScopeDenied && refused.count(plugin.EntryCallStarted) == 0:
		t.tell(scoped, Pass, "")
	case code == "":
		t.tell(scoped, Fail, "at /permissions: it ran for a caller without the permissions")
		return nil
	default:
		t.tell(scoped, Fail, "at /permissions: it ended in %s, not in scope_denied", code)
		return nil
	}
	bare.by = t.host.Varied(app.Variation{Target: func(t *plugin.Target) { t.Operation.Permissions = nil }})
	passed, err := t.host.call(ctx, bare)
	if err != nil {
		return err
	}
	if t.barred(passed) != "" {
		return nil // the call with its permissions tells why
	}
	switch plugin.CodeOf(passed.err) {
	case plugin.CodeScopeDenied, plugin.CodePluginError:
		t.tell(defends, Pass, "")
	case "":
		t.tell(defends, Warn, "at /permissions: the code itself checks no scopes, so only the host refuses callers that lack them")
	default:
		t.tell(defends, Warn, "at /permissions: without scopes it ended in %s", messageOf(passed.err))
	}
	return nil
}
