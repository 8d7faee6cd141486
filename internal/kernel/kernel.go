// Package kernel takes one request to one recorded result.
//
// [Kernel.Call] is the only way to run anything: whoever asks, the call passes
// the same stages in the same order, and leaves an entry in the ledger however
// it ends. What each stage needs, the kernel asks of others through the small
// interfaces here; package app introduces them.
package kernel

import (
	"context"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/internal/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Registry knows every plugin.
type Registry interface {
	// Resolve returns the one operation of one version that a reference such as
	// name/op@1.x means.
	Resolve(ctx context.Context, ref string) (*plugin.Target, error)
}

// A Policy judges calls. Silence means no.
type Policy interface {
	Decide(t *plugin.Target, call *plugin.Call) plugin.Decision
}

// A Ledger keeps what was asked and how it ended.
type Ledger interface {
	Lookup(ctx context.Context, tenant, operation, key string) (*ledger.Prior, error)
	Claim(ctx context.Context, c ledger.Claim) (ledger.Lease, *ledger.Prior, error)
	Settle(ctx context.Context, lease ledger.Lease, o ledger.Outcome, rec *plugin.CallRecord, at time.Time) error
	Record(ctx context.Context, tenant string, kind plugin.EntryKind, rec *plugin.CallRecord, at time.Time, durable bool) error
}

// A Runner carries calls out.
type Runner interface {
	Run(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error)
	Level() string // the isolation its plugins reach: full, partial or none
}

// Services are what a plugin may ask of the host.
type Services interface {
	For(t *plugin.Target, call *plugin.Call) plugin.Services
}

// Options are the parts of a kernel. All of the first five are needed.
type Options struct {
	Registry Registry
	Policy   Policy
	Ledger   Ledger
	Runner   Runner
	Services Services

	MaxInput  int              // bytes of an input; 4 MiB where it is 0
	MaxOutput int              // bytes of a result's data; 4 MiB where it is 0
	Now       func() time.Time // time.Now where it is nil
	Log       *slog.Logger     // the causes of internal errors; discarded where it is nil
}

// A Kernel runs calls. It is safe for concurrent use.
type Kernel struct {
	Options
	cache *cache
}

// New returns a kernel made of these parts.
func New(o Options) *Kernel {
	if o.MaxInput == 0 {
		o.MaxInput = 4 << 20
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 4 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Kernel{Options: o, cache: newCache()}
}

// Call takes one request to one recorded result. Every surface, and every
// plugin that asks for an operation, ends up here; there is no second way in.
//
// On error the result holds no data, and plugin.CodeOf tells which stage refused.
func (k *Kernel) Call(ctx context.Context, call plugin.Call) (res plugin.Result, err error) {
	// Record that we were asked and, on the way out, how it ended: for refused
	// calls too, and for callers who have hung up.
	r := k.begin(&call)
	defer func() { res, err = r.finish(ctx, res, err) }()

	// Resolve: which operation of which version of which plugin is meant?
	if err := r.resolve(ctx); err != nil {
		return res, err
	}
	// Look up: a key seen before gets its first answer and no second effect.
	if first, seen, err := r.lookUp(ctx); seen || err != nil {
		return first, err
	}
	// Check in: the plugin never sees input its own schema refuses.
	if err := r.checkIn(); err != nil {
		return res, err
	}
	// Decide: may this principal cause these effects? Silence means no.
	if err := r.decide(); err != nil {
		return res, err
	}
	// Reuse: a pure tool has answered this very input before.
	if earlier, found := r.reuse(); found {
		return earlier, nil
	}
	// Claim: from here on a second call with this key finds this one.
	if first, seen, err := r.claim(ctx); seen || err != nil {
		return first, err
	}
	// Run: in a process of its scope, under a deadline, holding only the
	// services it was granted.
	if res, err = r.run(ctx); err != nil {
		return res, err
	}
	// Check out: what a plugin returns is a claim until it matches what it promised.
	return res, r.checkOut(&res)
}
