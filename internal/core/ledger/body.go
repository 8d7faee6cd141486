package ledger

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// bodyOf returns the body of an entry about a call: the record as JSON, its members in the
// order of the struct. What a plugin wrote is recorded as well as it can be, never refused.
//
// A record is spelled here member by member, to the byte as the library spells it. One with a
// member that only the library can spell is left to the library.
func bodyOf(rec *plugin.CallRecord) ([]byte, error) {
	b := bodies.Get().(*body)
	defer bodies.Put(b)
	b.text, b.odd = b.text[:0], false
	if b.record(rec); !b.odd {
		return slices.Clone(b.text), nil
	}
	return json.Marshal(rec, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

var bodies = sync.Pool{New: func() any { return new(body) }}

// A body is the body of an entry while it is spelled.
type body struct {
	text  []byte
	names []string // of metrics
	odd   bool     // it holds what only the library can spell
}

func (b *body) record(r *plugin.CallRecord) {
	b.text = append(b.text, '{')
	b.member("call_id", r.CallID)
	b.member("operation", r.Operation)
	b.member("plugin", r.Plugin)
	b.member("version", r.Version)
	b.member("package_digest", r.PackageDigest)
	b.member("kind", string(r.Kind))
	b.list("effects", r.Effects)
	b.member("input_hash", r.InputHash)
	b.optional("asked_hash", r.AskedHash)
	b.member("result_hash", r.ResultHash)
	b.member("status", string(r.Status))
	b.failure(r.Error)
	b.metrics(r.Metrics)
	b.nondeterminism(r.Nondeterminism)
	b.odd = b.odd || r.Randomness != nil
	b.member("correlation_id", r.Correlation)
	b.member("workflow_id", r.Workflow)
	b.member("step_id", r.Step)
	b.member("principal", r.Principal)
	b.member("actor", r.Actor)
	b.optional("by", r.By)
	b.optional("asker", r.Asker)
	b.member("origin", string(r.Origin))
	b.member("parent", r.Parent)
	b.member("session", r.Session)
	b.optional("agent", r.Agent)
	b.member("key", r.Key)
	b.member("plan", r.Plan)
	b.list("labels", r.Labels)
	if len(r.Artifacts) > 0 {
		b.list("artifacts", r.Artifacts)
	}
	b.name("attempt")
	b.text = strconv.AppendInt(b.text, r.Attempt, 10)
	b.decision(r.Decision)
	b.member("approval", r.Approval)
	b.member("isolation", r.Isolation)
	b.optional("enforcement", string(r.Enforcement))
	b.flag("cached", r.Cached)
	if r.Dry {
		b.flag("dry", true)
	}
	b.member("replays", r.Replays)
	b.member("schema_version", r.SchemaVersion)
	b.text = append(b.text, '}')
}

// name begins a member.
func (b *body) name(name string) {
	if last := b.text[len(b.text)-1]; last != '{' {
		b.text = append(b.text, ',')
	}
	b.text = append(b.text, '"')
	b.text = append(b.text, name...)
	b.text = append(b.text, '"', ':')
}

func (b *body) member(name, value string) {
	b.name(name)
	b.quote(value)
}

func (b *body) optional(name, value string) {
	if value != "" {
		b.member(name, value)
	}
}

func (b *body) flag(name string, value bool) {
	b.name(name)
	b.text = strconv.AppendBool(b.text, value)
}

func (b *body) list(name string, values []string) {
	b.name(name)
	b.text = append(b.text, '[')
	for i, value := range values {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.quote(value)
	}
	b.text = append(b.text, ']')
}

// quote spells a text. The library replaces what is not UTF-8.
func (b *body) quote(value string) {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			text, err := jsontext.AppendQuote(b.text, value)
			b.text, b.odd = text, b.odd || err != nil
			return
		}
	}
	b.text = append(b.text, '"')
	b.text = append(b.text, value...)
	b.text = append(b.text, '"')
}

func (b *body) null(name string) {
	b.name(name)
	b.text = append(b.text, "null"...)
}

func (b *body) failure(e *plugin.ErrorRecord) {
	if e == nil {
		b.null("error")
		return
	}
	b.name("error")
	b.text = append(b.text, '{')
	b.member("code", string(e.Code))
	b.member("plugin_code", e.PluginCode)
	b.member("message", e.Message)
	b.text = append(b.text, '}')
}

func (b *body) decision(d *plugin.Decision) {
	if d == nil {
		b.null("decision")
		return
	}
	b.name("decision")
	b.text = append(b.text, '{')
	b.member("verdict", string(d.Verdict))
	b.list("reasons", d.Reasons)
	b.member("policy", d.Policy)
	b.text = append(b.text, '}')
}

func (b *body) nondeterminism(n *plugin.Nondeterminism) {
	if n == nil {
		b.null("nondeterminism")
		return
	}
	b.name("nondeterminism")
	b.text = append(b.text, '{')
	b.flag("is_nondeterministic", n.Is)
	if len(n.Reasons) > 0 {
		b.list("reasons", n.Reasons)
	}
	b.optional("stability", n.Stability)
	b.flag("undisclosed", n.Undisclosed)
	b.text = append(b.text, '}')
}

// metrics spells measurements by name.
func (b *body) metrics(all plugin.Metrics) {
	b.names = b.names[:0]
	for name := range all {
		b.names = append(b.names, name)
	}
	slices.Sort(b.names)
	b.name("metrics")
	b.text = append(b.text, '{')
	for i, name := range b.names {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.quote(name)
		b.text = append(b.text, ':')
		b.measurement(all[name])
	}
	b.text = append(b.text, '}')
	clear(b.names) // they are not kept
}

func (b *body) measurement(value any) {
	switch v := value.(type) {
	case nil:
		b.text = append(b.text, "null"...)
	case string:
		b.quote(v)
	case bool:
		b.text = strconv.AppendBool(b.text, v)
	case int:
		b.text = strconv.AppendInt(b.text, int64(v), 10)
	case int64:
		b.text = strconv.AppendInt(b.text, v, 10)
	case float64:
		if size := math.Abs(v); v != 0 && size < 1e-6 || !(size < 1e21) {
			b.odd = true // it has an exponent, or is no number
			return
		}
		b.text = strconv.AppendFloat(b.text, v, 'f', -1, 64)
	default:
		b.odd = true
	}
}
