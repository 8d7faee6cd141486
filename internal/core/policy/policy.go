// Package policy decides whether something may happen: policies written in
// Cedar, held against one schema, judge who asks, for what, from where and with
// which arguments.
//
// Silence denies; a forbid wins over every permit; a policy that fails denies, whatever
// else allows; and where a permit that matches carries @approval, a person has to
// agree. The same holds if the arguments came from outside and the operation has
// effects, unless a permit that matches says @untrusted("allow"). If an agent or a
// service acts for a principal, both are judged, and the stricter verdict holds.
//
// A decision names the policies it comes from. It is a function of the
// policies, the question and what the host knows of the principal: no clock, no
// store, no network.
//
//	@id("drafts") permit (principal, action == Action::"execute", resource == Operation::"Email/GenerateDraft");
//
//	@id("apply") @approval("it writes the final mail")
//	permit (principal, action == Action::"execute", resource in Plugin::"Apply");
//
//	@id("consent") @reason("sending mail needs your consent")
//	forbid (principal, action == Action::"execute", resource)
//	when { resource.effects.contains("gmail_send") }
//	unless { context.consent.contains("gmail_send") };
package policy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/plugin"
)

// An Action is what someone wants to do.
type Action string

// PoliciesPlugin is what stands for the policies themselves where it is asked who may configure
// them.
const PoliciesPlugin = "mortise.policies"

// The actions.
const (
	Execute   Action = "execute"   // call an operation
	List      Action = "list"      // see that it exists
	Approve   Action = "approve"   // agree to a call of it that waits
	Configure Action = "configure" // register, switch or delete a plugin
)

// Known reports whether a is one of the four.
func (a Action) Known() bool { _, known := actions[a]; return known }

// Options are the parts of an engine.
type Options struct {
	Sources []Source // where policies are kept; without any, everything is denied

	// Standing returns what the host knows of a principal of a tenant. It is called on
	// every decision, so it must be fast and safe for concurrent use; nil means that the
	// host knows nothing of any principal.
	Standing func(tenant string, who plugin.Principal) Standing

	// Known is what Standing answers from, in one spelling: part of the version,
	// because decisions depend on it.
	Known []byte

	Isolation string // the wall that plugins run behind: none, partial or full; none where it is empty
}

// Standing is what the host knows of a principal beside its credential.
type Standing struct {
	Groups  []string `json:"groups,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	Consent []string `json:"consent,omitempty"` // what the person has agreed to
}

// An Engine decides by the policies of its sources. It is safe for concurrent
// use: a decision is made by one whole set, the old one or the new one.
type Engine struct {
	options  Options // of the reload that is under way; what decides has its own
	now      atomic.Pointer[policies]
	behind   atomic.Pointer[error] // why the stored policies are not those that decide; nil where they are
	reload   sync.Mutex            // guards options; one reload at a time, so that the last one wins
	subjects cache[subjectKey, *subject]
}

// Open returns the engine of these sources. The error is or wraps [Problems]
// where a policy is at fault.
func Open(o Options) (*Engine, error) {
	if o.Isolation == "" {
		o.Isolation = "none"
	}
	e := &Engine{options: o}
	if err := e.Reload(); err != nil {
		return nil, err
	}
	return e, nil
}

// New returns the engine of an allow-list, or an error that names the rule and
// what is wrong with it.
func New(rules []Rule) (*Engine, error) {
	return Open(Options{Sources: []Source{Rules(rules)}})
}

// Reload asks the sources again. On error the policies in force stay.
func (e *Engine) Reload() error {
	e.reload.Lock()
	defer e.reload.Unlock()
	documents, version, err := e.read()
	if err != nil {
		return err
	}
	return e.use(documents, version)
}

// Adopt puts into force what another engine has: its sources, what it knows of principals,
// and the policies that it read. A decision is made by all of the one or all of the other.
func (e *Engine) Adopt(other *Engine) {
	e.reload.Lock()
	defer e.reload.Unlock()
	e.options = other.options
	e.now.Store(other.now.Load())
	e.behind.Store(other.behind.Load())
}

// read asks the sources, and returns what they hold and its version.
func (e *Engine) read() ([]Document, string, error) {
	documents, err := collect(e.options.Sources)
	if err != nil {
		return nil, "", fmt.Errorf("reading policies: %w", err)
	}
	return documents, e.versionOf(documents), nil
}

// use puts documents into force.
func (e *Engine) use(documents []Document, version string) error {
	now := e.now.Load()
	if now != nil && now.version == version {
		e.behind.Store(nil)
		return nil
	}
	next, err := build(documents)
	if err != nil {
		if now != nil && now.stored != storedOf(documents) {
			e.behind.Store(&err)
		}
		return err
	}
	next.version, next.stored, next.options = version, storedOf(documents), e.options
	e.now.Store(next)
	e.behind.Store(nil)
	return nil
}

// storedOf identifies the stored documents among some.
func storedOf(documents []Document) string {
	hash := sha256.New()
	for _, d := range documents {
		if d.stored {
			fmt.Fprintf(hash, "%d %s %d %s ", len(d.Name), d.Name, len(d.Text), d.Text)
		}
	}
	return string(hash.Sum(nil))
}

// Behind returns the error that keeps the engine from loading the stored policies, or nil. For
// example, a policy file of this node has the same @id as a stored policy. While Behind is not
// nil, the engine denies everything except changes of the policies themselves. If only policy
// files cannot be loaded, Behind is nil and the previous policies stay in force.
func (e *Engine) Behind() error {
	if err := e.behind.Load(); err != nil {
		return *err
	}
	return nil
}

// Version identifies the policies in force: the hash of their texts, with the
// schema they were held against and all else that decisions depend on.
func (e *Engine) Version() string { return e.now.Load().version }

// Len returns how many policies are in force.
func (e *Engine) Len() int { return len(e.now.Load().all) }

// A Question is what policy is asked.
type Question struct {
	Action   Action         // execute where it is empty
	Target   *plugin.Target // to configure a plugin, without an operation
	Call     *plugin.Call   // who asks, from where, with which arguments
	Standing *Standing      // in place of what the host knows of the principal
	Acting   *Standing      // likewise of the agent or service that acts
}

// Decide returns the verdict on a call and the reasons for it.
func (e *Engine) Decide(t *plugin.Target, call *plugin.Call) plugin.Decision {
	return e.Ask(&Question{Target: t, Call: call})
}

// Ask returns the verdict on a question and the reasons for it.
func (e *Engine) Ask(q *Question) plugin.Decision {
	p := e.now.Load()
	if err := e.Behind(); err != nil && !(q.Action == Configure && q.Target != nil && q.Target.Manifest.Name == PoliciesPlugin) {
		return p.refuse("this node cannot load the stored policies, so it denies every call; its log says why")
	}
	d := p.ask(e, q)
	if acting := e.acting(q); acting != nil {
		d = stricter(judged{q, d}, judged{acting, p.ask(e, acting)})
	}
	return d
}

// May returns the verdict on an action that is no call of its own: to see an
// operation, to agree to it, to switch its plugin. call says who asks.
func (e *Engine) May(action Action, t *plugin.Target, call *plugin.Call) plugin.Decision {
	return e.Ask(&Question{Action: action, Target: t, Call: call})
}

// ConfirmsSelf reports whether the principal of a call may confirm it in the program that made it:
// policy lets them approve it, and a permit that does so has @self("allow"). What acts for a
// principal needs both as well.
func (e *Engine) ConfirmsSelf(q *Question) bool {
	p := e.now.Load()
	if e.Behind() != nil || !p.confirmsSelf(e, q) {
		return false
	}
	acting := e.acting(q)
	return acting == nil || p.confirmsSelf(e, acting)
}

func (p *policies) confirmsSelf(e *Engine, q *Question) bool {
	r, refused := p.request(e, q)
	if refused != "" || r.action != Approve {
		return false
	}
	found := p.candidates(r)
	context, err := r.context(found.reads())
	if err != nil {
		return false
	}
	o := p.judge(r, found, context)
	return o.verdict() == plugin.Allow && slices.ContainsFunc(o.permits, func(s *statement) bool { return s.self })
}

// ask judges the principal of a question, without any principal that acts for it.
func (p *policies) ask(e *Engine, q *Question) plugin.Decision {
	r, refused := p.request(e, q)
	if refused != "" {
		return p.refuse(refused)
	}
	if d, found := p.ruled(r); found {
		return d
	}
	candidates := p.candidates(r)
	d := p.decide(r, candidates)
	p.rule(r, candidates.reads(), d)
	return d
}

// decide weighs what the candidates say to a request.
func (p *policies) decide(r *request, found candidates) plugin.Decision {
	context, err := r.context(found.reads())
	if err != nil {
		return p.refuse(err.Error())
	}
	o := p.judge(r, found, context)
	return plugin.Decision{Verdict: o.verdict(), Policy: p.version, Reasons: o.reasons(r)}
}

func (p *policies) refuse(reason string) plugin.Decision {
	return plugin.Decision{Verdict: plugin.Deny, Policy: p.version, Reasons: []string{reason}}
}

// Check says what is wrong with some documents, as [Problems], and otherwise
// how many policies they hold.
func Check(documents []Document) (int, error) {
	p, err := build(documents)
	if err != nil {
		return 0, err
	}
	return len(p.all), nil
}

// Standing returns what the host knows of a principal, with the groups that their sign-in
// gave.
func (e *Engine) Standing(tenant string, who plugin.Principal) Standing {
	return e.now.Load().standing(tenant, who)
}

func (p *policies) standing(tenant string, who plugin.Principal) Standing {
	var s Standing
	if p.options.Standing != nil {
		s = p.options.Standing(tenant, who)
	}
	if len(who.Groups) > 0 {
		s.Groups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Groups, who.Groups))))
	}
	return s
}

// Documents returns the documents in force, by name.
func (e *Engine) Documents() []Text { return slices.Clone(e.now.Load().texts) }

// A Text is a document in force.
type Text struct {
	Name     string
	Policies int
}
