package client

import (
	"context"
	"net/url"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Login asks the host at a URL who a token stands for, and keeps both under a name, the name
// of the machine where it is empty. The context is in use then.
func Login(ctx context.Context, where, token, name string, say func(string, ...any)) (Context, Who, error) {
	r, err := atURL(where, token, say)
	if err != nil {
		return Context{}, Who{}, Misuse{err}
	}
	if !strings.HasPrefix(token, "mrt_") {
		return Context{}, Who{}, plugin.Errorf(plugin.CodeInvalidInput, "that is no token of a host, which begins with mrt_; 'mortise tokens create' makes one")
	}
	if err := r.meet(ctx); err != nil {
		return Context{}, Who{}, err
	}
	if name == "" {
		u, err := url.Parse(r.base)
		if err != nil {
			return Context{}, Who{}, err
		}
		name = u.Host
	}
	c := Context{Name: name, URL: r.base, Token: token, Principal: r.who.Principal}
	return c, r.who, ChangeContexts(func(all *Contexts) error { return all.Keep(c) })
}

// Use puts a context in use.
func Use(name string) (c Context, err error) {
	return c, ChangeContexts(func(all *Contexts) error {
		found, known := all.Find(name)
		if !known {
			return noContext(name)
		}
		c, all.Current = found, found.Name
		return nil
	})
}

// Forget takes a context away with its token, the one in use where name is empty. The token
// is as good as before: who made it can revoke it.
func Forget(name string) (c Context, err error) {
	return c, ChangeContexts(func(all *Contexts) error {
		if name == "" {
			name = all.Current
		}
		if name == "" {
			return plugin.Errorf(plugin.CodeNotFound, "no context is in use; 'mortise contexts list' shows those there are")
		}
		found, known := all.Find(name)
		if !known {
			return noContext(name)
		}
		c = found
		all.Remove(found.Name)
		return nil
	})
}

func noContext(name string) error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no context %.100s; 'mortise contexts list' shows those there are", name)
}
