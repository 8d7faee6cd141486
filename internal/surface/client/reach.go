package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Here is the name of the host in this process, where a host is named.
const Here = "embedded"

// Options say which host is meant.
type Options struct {
	Server string // a URL, the name of a context, [Here], or "" for what there is
	Home   string // the data directory
	Config string // the configuration file, where the caller named one
	Chosen bool   // the caller named it, so that no context that is in use counts
	As     string // on whose behalf the owner acts
	Tenant string // that the owner acts for, in a host of this process
	Token  string // for a URL; that of the context for it where it is empty

	Database string // the URL of the database, where the caller named one

	Say func(format string, args ...any) // tells a person something on the way
}

// A Target is the host that is meant.
type Target struct {
	Context Context // the URL and its token; of no URL where it is on this machine
	Here    bool    // it is to be in this process, whatever serves
}

// Remote reports whether it is at a URL.
func (t Target) Remote() bool { return t.Context.URL != "" }

// A Misuse says that what names the host is at fault.
type Misuse struct{ error }

// Find returns which host is meant: the one that is named, or the context in use, or that of
// the data directory. Nothing is asked of it.
func (o *Options) Find() (Target, error) {
	if o.Server == Here {
		return Target{Here: true}, nil
	}
	contexts, err := ReadContexts()
	if err != nil && (o.Server != "" || !o.Chosen) {
		return Target{}, Misuse{err}
	}
	name := o.Server
	if name == "" && !o.Chosen {
		name = contexts.Current
	}
	if name == "" {
		return Target{}, nil
	}
	c, known := contexts.Find(name)
	if !known {
		base, err := BaseURL(name)
		if err != nil {
			return Target{}, Misuse{fmt.Errorf("%w; and no context has that name: 'mortise contexts list' shows those there are", err)}
		}
		c = Context{Name: name, URL: base}
	}
	if o.Token != "" {
		c.Token = o.Token
	}
	return Target{Context: c}, nil
}

// Reach connects with the host that is meant, and asks it who the caller is. It returns nil
// where the host is this process: nothing serves the data directory, or [Here] is named.
func Reach(ctx context.Context, o Options) (Host, error) {
	t, err := o.Find()
	if err != nil || t.Here {
		return nil, err
	}
	if t.Remote() {
		if o.As != "" {
			return nil, Misuse{errors.New("--as is the owner's, at the data directory of the host; a token is of one principal")}
		}
		if t.Context.Token == "" {
			return nil, plugin.Errorf(plugin.CodeUnauthenticated, "there is no token for %s: 'mortise login --server %s' keeps one, and MORTISE_TOKEN gives one", t.Context.URL, t.Context.URL)
		}
		r, err := atURL(t.Context.URL, t.Context.Token, o.Say)
		if err != nil {
			return nil, Misuse{err}
		}
		return r, r.meet(ctx)
	}
	home, err := filepath.Abs(o.Home)
	if err != nil || o.Home == "" {
		return nil, err
	}
	return reachServing(ctx, home, o)
}

// starting is how long a host that serves has to listen on its socket.
const starting = 5 * time.Second

// reachServing connects with the host that serves a data directory; nil where none does.
// One that serves and does not answer is an error: two hosts would share the work without
// the other's knowledge of processes and sessions.
func reachServing(ctx context.Context, home string, o Options) (Host, error) {
	for begun := time.Now(); ; host.Pause(ctx, 50*time.Millisecond) {
		pid, _ := setup.Serving(home)
		if pid == 0 {
			return nil, nil
		}
		base, err := socket.Base(home, "run", "owner")
		if err != nil { // it is of another user: what it says is nothing to this one
			return nil, nil
		}
		r := overSocket(base+socket.Ending, o.As, o.Say)
		r.who.Home = home
		err = r.meet(ctx)
		if r.background != "" {
			if another, err := r.replaced(ctx, o); another || err != nil {
				return nil, err
			}
		}
		switch {
		case err == nil && r.background != "":
			return r, nil
		case err == nil:
			return r, r.configured(o.Config)
		case errors.Is(err, errSilent):
			return nil, plugin.Errorf(plugin.CodeUnavailable, "process %d serves %s and has not answered for %s: it hangs, or was stopped; --embedded goes without it, and 'kill -CONT %d' lets one that was stopped go on", pid, home, answering, pid)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !absent(err):
			return nil, err
		case time.Since(begun) < starting:
			continue // it starts, or ends
		case !setup.Served(home): // the process is another one that got its id
			return nil, nil
		}
		return nil, plugin.Errorf(plugin.CodeUnavailable, "process %d serves %s and does not answer at %s: %v; --embedded goes without it", pid, home, base+socket.Ending, err)
	}
}

// configured refuses a host that serves with another configuration than the caller named.
func (r *remote) configured(with string) error {
	if with == "" {
		return nil
	}
	whole, err := filepath.Abs(with)
	if err != nil || whole == r.who.Config {
		return err
	}
	return Misuse{fmt.Errorf("%s has the configuration %s, and %s is named; --embedded uses that", r.where(), r.who.Config, with)}
}

// answering is how long a host may take to say who the caller is: what comes after may wait
// for long, and this waits for nothing.
const answering = 10 * time.Second

var errSilent = errors.New("it has not answered")

// absent reports whether nothing listens at a socket.
func absent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist))
}

// meet asks the host who the caller is. One of another version is told of, and asked all
// the same: what it has not is its answer.
func (r *remote) meet(ctx context.Context) error {
	var me rest.Me
	asked, cancel := context.WithTimeoutCause(ctx, answering, errSilent)
	defer cancel()
	_, err := r.do(asked, asking{method: http.MethodGet, path: "me", head: func(h http.Header) { r.background = h.Get(rest.BackgroundHeader) }}, &me)
	if err != nil {
		if ctx.Err() == nil && asked.Err() != nil {
			return plugin.Errorf(plugin.CodeUnavailable, "%s takes connections and does not answer: %w", r.where(), errSilent)
		}
		if plugin.CodeOf(err) == plugin.CodeUnauthenticated && r.who.Manner == AtURL {
			return plugin.Errorf(plugin.CodeUnauthenticated, "%s does not take the token: it was revoked, has expired, or is of another host; 'mortise login --server %s' keeps another", r.where(), r.base)
		}
		return err
	}
	r.who.Principal, r.who.Owner, r.who.Version, r.who.Operator, r.who.Config = me.Principal, me.Owner, me.Version, me.Operator, me.Config
	if me.Version != host.Version && r.say != nil {
		r.say("mortise: this is version %s, and %s is of version %s: what one of them does not know is refused; use the same version of both", host.Version, r.where(), me.Version)
	}
	return nil
}
