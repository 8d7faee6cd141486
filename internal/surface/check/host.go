package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	hosts "github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A host is one that is thrown away after the checks. Unless a configuration
// says otherwise, its policy allows everything but for the careful principal,
// who may have no effects.
type host struct {
	*app.App
	home  string
	who   string // whose calls have what effects they have
	calls int    // so far, for the correlation of the next
}

func openHost(ctx context.Context, o Options) (*host, error) {
	home, err := os.MkdirTemp("", "mortise-check-")
	if err != nil {
		return nil, err
	}
	h := &host{home: home, who: trusting}
	text := []byte("policy: {allow: [{}, {effects: ['*'], principals: [" + trusting + "]}]}\n")
	if o.Sandbox != "" {
		text = append(text, "sandbox: "+o.Sandbox+"\n"...)
	}
	if o.Config != "" { // which says that itself
		if h.who, text, err = ruled(o.Config); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	conf := filepath.Join(home, "mortise.yaml")
	if err := os.WriteFile(conf, text, 0o600); err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.App, err = app.Open(ctx, app.Options{Home: home, Config: conf, Log: slog.New(slog.DiscardHandler), Notice: o.Notice})
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	for name, value := range o.Secrets {
		if err := h.giveSecret(ctx, name, value); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	return h, nil
}

func principalOf(who string) plugin.Principal { return plugin.Principal{Type: "user", ID: who} }

// ruled returns a configuration with only what decides over effects in the one
// at path: without its database and its notifications. The principal stays that
// of the file, since its groups, roles and consent refer to it.
func ruled(path string) (who string, text []byte, err error) {
	from, path, err := setup.ReadConfig("", path)
	if err != nil {
		return "", nil, &setup.Error{Err: fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	to := config.Default()
	to.Tenant, to.Principal, to.Policy, to.Egress, to.Sandbox = from.Tenant, from.Principal, from.Policy, from.Egress, from.Sandbox
	to.Policy.Configure, to.Approvals.By = []string{from.Principal}, []string{from.Principal}
	for i, file := range to.Policy.Files {
		if !filepath.IsAbs(file) {
			to.Policy.Files[i] = filepath.Join(dir, file)
		}
	}
	text, err = to.YAML()
	return from.Principal, text, err
}

// close closes the host and removes all that it kept.
func (h *host) close() error {
	var err error
	if h.App != nil {
		err = h.Close()
	}
	return errors.Join(err, rmtree.Remove(h.home))
}

// A caller takes calls: the host's own kernel, or one that differs in a part.
type caller interface {
	Call(ctx context.Context, call plugin.Call) (plugin.Result, error)
}

// The principals of the checks.
const (
	trusting = "check"
	careful  = "careful-check"
)

// A request is a call that a check makes.
type request struct {
	by     caller // the host's own kernel where it is nil
	ref    string
	input  []byte
	files  []plugin.File // that are handed on
	key    string
	scopes []string // "*" where it is nil
	free   bool     // nothing below it may have effects
	cached bool     // an earlier answer will do
}

// An answer is how such a call ended, with what the ledger has of it.
type answer struct {
	plugin.Result
	err     error
	entries []line // of the call and of those below it
}

// A line is one entry of the ledger about a call.
type line struct {
	kind   plugin.EntryKind
	record plugin.CallRecord
}

// call makes one call. The error is about the host, not about the call.
func (h *host) call(ctx context.Context, r request) (answer, error) {
	if r.by == nil {
		r.by = h.Kernel
	}
	if r.scopes == nil {
		r.scopes = []string{"*"}
	}
	who := h.who
	if r.free {
		who = careful
	}
	h.calls++
	call := plugin.Call{
		Tenant: h.Config.Tenant, Principal: plugin.Principal{Type: "user", ID: who, Scopes: r.scopes}, Origin: plugin.OriginCLI,
		Operation: r.ref, Input: r.input, Files: r.files, Key: r.key, Fresh: !r.cached, Trace: plugin.Trace{Correlation: fmt.Sprintf("check-%d", h.calls)},
	}
	var a answer
	a.Result, a.err = r.by.Call(ctx, call)
	if err := ctx.Err(); err != nil {
		return a, context.Cause(ctx)
	}
	var err error
	a.entries, err = h.lines(ctx, call.Trace.Correlation)
	return a, err
}

// lines returns what the ledger has of all calls of one correlation.
func (h *host) lines(ctx context.Context, correlation string) ([]line, error) {
	if err := h.Ledger.Flush(ctx); err != nil {
		return nil, err
	}
	var found []line
	err := h.Store.Snapshot(ctx, func(r store.Reader) error {
		for _, kind := range []string{"call.", string(plugin.EntryServiceRefused)} {
			for e, err := range r.Entries(ctx, store.EntryFilter{Tenant: h.Config.Tenant, Kind: kind}) {
				if err != nil {
					return err
				}
				var record plugin.CallRecord
				if err := json.Unmarshal(e.Body, &record); err != nil {
					return fmt.Errorf("reading entry %d: %w", e.Seq, err)
				}
				if record.Correlation == correlation {
					found = append(found, line{e.Kind, record})
				}
			}
		}
		return nil
	})
	return found, err
}

// below returns the entries of calls that the plugin asked for.
func (a *answer) below() []line {
	var found []line
	for _, l := range a.entries {
		if l.record.Parent != "" && l.kind != plugin.EntryServiceRefused {
			found = append(found, l)
		}
	}
	return found
}

// count counts the entries of the call itself that are of one kind.
func (a *answer) count(kind plugin.EntryKind) int {
	n := 0
	for _, l := range a.entries {
		if l.kind == kind && l.record.Parent == "" {
			n++
		}
	}
	return n
}

// giveSecret sets a secret for every plugin in each scope that a plugin may ask for: the system's,
// and those of the users who make calls.
func (h *host) giveSecret(ctx context.Context, name, value string) error {
	if _, err := h.As(h.Principal).Secrets().Set(ctx, hosts.SecretPlace{Name: name, System: true}, value); err != nil {
		return err
	}
	for _, who := range []string{h.who, careful} {
		if _, err := h.As(principalOf(who)).Secrets().Set(ctx, hosts.SecretPlace{Name: name}, value); err != nil {
			return err
		}
	}
	return nil
}
