// Package service is what a plugin may ask of the host while it works on a
// call: one broker for every runner, one file for each service.
//
// A plugin gets the services that its manifest asks for and no others, and of
// those only the methods that fit the kind of the operation at work and the
// effects it declares ([permit]). What a service does is done by the host, in
// the host's process, for exactly one call.
package service

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/usage"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// Names lists the services that exist, as manifests ask for them.
func Names() []string {
	return []string{cacheName, httpName, sessionName, artifactsName, referenceName, llmName,
		storageName, cursorName, secretsName, rateName, identityName, authName, auditName, kbName, queryName, ocrName, schedulerName}
}

// A Broker answers what plugins ask. It is safe for concurrent use. Its fields
// are set before the first call, Call always.
type Broker struct {
	// Call runs an operation that a plugin asks for.
	Call func(ctx context.Context, call plugin.Call) (plugin.Result, error)
	// Enqueue records a call that a worker runs later. If it is nil, calls cannot be
	// enqueued.
	Enqueue func(ctx context.Context, call plugin.Call) (plugin.Result, error)
	// Kind returns the kind of the operation that a call means, "" where it means
	// none; hidden is what its principal hears of one that they do not see. Where it is
	// nil, adapters may ask for nothing.
	Kind func(ctx context.Context, call *plugin.Call) (kind plugin.Kind, hidden error)
	// Refused hears of every request that was not allowed, but of no more than
	// 16 of one call. It may be nil.
	Refused func(Refusal)
	// Used hears of every request that went outside, once it has ended. It may
	// be nil.
	Used func(Use)

	// Sessions keeps artifacts; where it is nil, no call belongs to a session.
	Sessions Sessions
	// TypeOf infers the type of an artifact from its name and first bytes; where
	// it is nil, all are text.
	TypeOf func(name string, head []byte) string
	// Reference is the data that plugins look things up in. It may be nil.
	Reference Reference
	// Knowledge is what plugins put into knowledge bases and find there. It may
	// be nil.
	Knowledge *kb.Bases
	// Files win text from what plugins have. It may be nil.
	Files Files
	// Models answer what plugins ask of models. Where it is nil, none does.
	Models *llm.Dispatcher
	// Documents are what plugins ask models about. It may be nil.
	Documents Documents
	// Settings are what an administrator set for plugins, by their names.
	Settings map[string]map[string]any
	// RefuseWithoutModel has tools that ask for a model refuse to run without one.
	RefuseWithoutModel bool

	// Store is where plugins keep what they keep. Where it is nil, they keep
	// nothing.
	Store Store
	// Secrets are what plugins may read and set. It may be nil.
	Secrets Secrets
	// Accounts are what plugins act with elsewhere. It may be nil.
	Accounts Accounts

	// Scrubber takes secrets out of what dry runs tell. It may be nil.
	Scrubber Scrubber

	Egress      egress.Grants  // what an administrator allows beyond the public Internet
	Roots       *x509.CertPool // who may vouch for the hosts that Egress maps; those that the system trusts where it is nil
	Version     string         // of the host, as others on the network are told
	MaxAnswer   int            // bytes of one answer; 4 MiB where it is 0
	MaxOutput   func() int     // bytes of a result, as plugins are told; 4 MiB where it is nil
	MaxArtifact int64          // bytes of one artifact; 8 GiB where it is 0
	MaxMade     int64          // bytes of all that one call registers; 1 GiB where it is 0

	// Uncached hears why the cache could not be read or written. It may be nil.
	Uncached func(error)

	cache *cache
	web   *web
	rates *rates
}

// New returns a broker.
func New() *Broker {
	b := &Broker{cache: newCache(), rates: newRates()}
	b.web = newWeb(b)
	return b
}

// Close gives up the connections that were kept for later requests, and leaves
// what is cached to the next host.
func (b *Broker) Close() error {
	b.web.close()
	ctx, cancel := context.WithTimeout(context.Background(), cacheKeepTime)
	defer cancel()
	b.keepCache(ctx)
	return nil
}

// A Refusal is a request that was not allowed.
type Refusal struct {
	Target *plugin.Target
	Call   *plugin.Call
	Method string
	Err    *plugin.Error // its message begins with the method
}

// A Use is a request that went outside. It says where and how much, not what.
type Use struct {
	Target   *plugin.Target
	Call     *plugin.Call
	Method   string   // of the service
	Request  string   // such as "GET api.example.com"
	Effect   string   // "" for one that reads
	Outcome  string   // an HTTP status, or an error's code
	Mapped   []string // the hosts that were asked where an administrator led them
	Attempts int
	Sent     int // bytes of the request's body
	Received int // bytes of the answer's body
	Took     time.Duration
}

// For returns what one call is granted. Effects go through the journal, where
// there is one. The answer has one more method, Attach.
func (b *Broker) For(target *plugin.Target, call *plugin.Call, journal *ledger.Journal) usage.Grant {
	g := &grant{broker: b, target: target, call: call, journal: journal}
	if call.Dry != nil {
		g.dryRates = newRates()
	}
	return g
}

// Reading returns what a call is granted while it only looks: for a preview, or
// to find out how an earlier call ended.
func (b *Broker) Reading(target *plugin.Target, call *plugin.Call) usage.Grant {
	return &grant{broker: b, target: target, call: call, reading: true}
}

// A grant is the services of one call.
type grant struct {
	broker  *Broker
	target  *plugin.Target
	call    *plugin.Call
	journal *ledger.Journal // nil for a call that is not claimed
	reading bool            // nothing it asks for may have an effect
	refused atomic.Int32

	used, unsettled, confided, starved atomic.Bool

	audits atomic.Int32

	dryRates *rates // of a dry run, which takes nothing out of the buckets there are

	mapped []string // hosts that were asked where an administrator led them; guarded by mu

	queries atomic.Int32  // of models
	usage   llm.CallUsage // what they used

	mu     sync.Mutex
	labels []string       // of what it heard
	nested map[string]int // how many equal operations it asked for

	scratch     fs.FS      // of the process at work, as far as the host can read it
	scratchDir  string     // where that process knows it
	before      []Artifact // what the call may have read
	beforeKnown bool
	pillar      string            // of its session, once that is known
	made        []plugin.Artifact // what it registered
	tries       int               // how often it asked for that
	length      int64             // bytes of all the files that it asked for
}

// Used reports whether something outside the host was asked during the call, or
// a secret.
func (g *grant) Used() bool { return g.used.Load() || g.confided.Load() }

// Unsettled reports whether an effect outside was begun during the call and its outcome
// is unknown.
func (g *grant) Unsettled() bool { return g.unsettled.Load() }

// Starved reports whether a service failed during the call for a reason of the
// host's own, such as a full disk or a database that does not answer.
func (g *grant) Starved() bool { return g.starved.Load() }

// Labels returns what the plugin's answer is tainted with for what the host told
// it during the call: whatever came from outside the host is untrusted.
func (g *grant) Labels() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used.Load() {
		return plugin.Labels(g.labels, []string{plugin.Untrusted})
	}
	return g.labels
}

// heard takes down what an answer is tainted with.
func (g *grant) heard(labels []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.labels = plugin.Labels(g.labels, labels)
}

// maxRefusals is how many refusals of one call are reported: a plugin cannot
// fill the ledger by asking for what it may not have.
const maxRefusals = 16

// Serve answers one request of the plugin, such as "cache.get".
func (g *grant) Serve(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	raw, err := g.serve(ctx, name, args)
	if err != nil && plugin.CodeOf(err) == plugin.CodeInternal {
		g.starved.Store(true)
	}
	return raw, err
}

func (g *grant) serve(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	t, err := g.prepare(name, args)
	if err != nil {
		return nil, g.refuse(name, err, plugin.CodeServiceDenied, plugin.CodeEffectUndeclared, plugin.CodeEgressDenied)
	}
	if g.call.Dry != nil {
		value, err := g.dryRun(ctx, name, t)
		if err != nil {
			if t.class == Nested {
				return nil, err
			}
			return nil, g.refuse(name, err, plugin.CodeEgressDenied)
		}
		return g.encode(ctx, name, value, t)
	}
	if t.effect != "" && g.journal != nil {
		raw, err := g.journalled(ctx, name, args, t)
		return raw, g.refuse(name, err, plugin.CodeEgressDenied)
	}
	value, err := g.carryOut(ctx, t)
	if err != nil {
		if t.class == Nested {
			return nil, err // a call of its own, with an entry of its own
		}
		return nil, g.refuse(name, err, plugin.CodeEgressDenied)
	}
	return g.encode(ctx, name, value, t)
}

// carryOut does what no journal hears of.
func (g *grant) carryOut(ctx context.Context, t task) (value any, err error) {
	if t.commit == nil {
		return t.do(ctx)
	}
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return nil, err
		}
	}
	err = g.broker.Store.Write(ctx, func(tx ledger.Tx) (err error) {
		value, err = t.commit(ctx, tx)
		return err
	})
	return value, err
}

func (b *Broker) maxAnswer() int {
	if b.MaxAnswer == 0 {
		return 4 << 20
	}
	return b.MaxAnswer
}

// prepare finds out what is asked for and whether this call may have it.
// Nothing is done yet.
func (g *grant) prepare(name string, args json.RawMessage) (task, error) {
	service, _, _ := strings.Cut(name, ".")
	if name != operationsCall && !slices.Contains(g.target.Manifest.Capabilities, service) {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s was not granted the service %.60s", g.target.Name(), service)
	}
	m, exists := methods[name]
	if !exists {
		return task{}, plugin.Errorf(plugin.CodeNotFound, "there is no service method %.120s", name)
	}
	t, err := m(g, args)
	if err != nil {
		return task{}, err
	}
	if g.reading && t.effect != "" {
		return task{}, plugin.Errorf(plugin.CodeEffectUndeclared, "%s: it has the effect %s, and %s is only to look now", name, t.effect, g.target.Name())
	}
	return t, permit(g.target, g.call, name, t)
}

// refuse reports err where it is a refusal, by its code.
func (g *grant) refuse(name string, err error, codes ...plugin.Code) error {
	if err == nil {
		return nil
	}
	e := plugin.AsError(err)
	if g.broker.Refused == nil || !slices.Contains(codes, e.Code) {
		return err
	}
	n := g.refused.Add(1)
	if n > maxRefusals {
		return err
	}
	reported := *e
	if len(name) > 120 {
		name = name[:120]
	}
	if !strings.HasPrefix(reported.Message, name) {
		reported.Message = name + ": " + reported.Message
	}
	if n == maxRefusals {
		reported.Message += "; further refusals of this call are not recorded"
	}
	g.broker.Refused(Refusal{Target: g.target, Call: g.call, Method: name, Err: &reported})
	return err
}

// decode reads the arguments of a method.
func decode(name string, args json.RawMessage, into any) error {
	weight := len(args)
	if weight > smallArgs {
		weight = budget.Weigh(args).Read()
	}
	err := budget.Do(weight, func() error { return json2.Unmarshal(args, into, json2.RejectUnknownMembers(true)) })
	if budget.Exceeded(err) || errors.Is(err, errManyValues) {
		return plugin.Errorf(plugin.CodeInputTooLarge, "%s: what is asked for %w", name, err)
	}
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", name, err)
	}
	return nil
}

// smallArgs is up to which size arguments are not weighed.
const smallArgs = 16 << 10

// members are an object of any shape in the arguments of a method. Other arguments
// are of types of ours or stay text; only these become a tree of values, which
// takes many times the memory of its text, and stays until the method is done.
type members map[string]any

// maxValues is how many values members may hold, those within others included.
const maxValues = 32 << 10

var errManyValues = fmt.Errorf("has an object of more than %d values; send fewer at a time, or put them into an artifact", maxValues)

// UnmarshalJSONFrom decodes members that are not too many.
func (m *members) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if len(raw) > maxValues && budget.Weigh(raw).Values > maxValues {
		return errManyValues
	}
	return json2.Unmarshal(raw, (*map[string]any)(m))
}

// nothing is the value of a method that only does.
type nothing struct{}
