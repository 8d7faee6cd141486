package host

import (
	"context"
	"crypto/subtle"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of authentication.
const (
	believed   = time.Second // for which a token that was checked is not read again
	mostKnown  = 4096        // tokens that are believed at a time
	usePeriod  = time.Minute // at which the last use of a token is kept
	lookRate   = 200         // tokens from one address that are looked up a second, and
	lookBurst  = 1000        // so many at once
	addresses  = 10_000
	wrongRate  = 10  // secrets for one id that are wrong a second, and
	wrongBurst = 100 // so many at once
)

// An Authenticator tells who presents a token. It is safe for concurrent use.
type Authenticator struct {
	// Signed returns whose token that a provider signed it is. There are none where it is nil.
	Signed func(ctx context.Context, text string) (Machine, error)
	Now    func() time.Time // the clock

	host  *Host
	looks *ratelimit.Limiter[string] // by address, see [clientaddr.Group]
	wrong *ratelimit.Limiter[string] // by the id that a token says, of one that there is or not

	mu     sync.Mutex
	known  map[string]knownToken // by hash
	forgot int                   // how often all was forgotten: what was found out before is not believed after
}

type knownToken struct {
	Caller
	until time.Time
}

// Authenticator returns what authenticates callers of this host.
func (h *Host) Authenticator() *Authenticator {
	return &Authenticator{
		Now: h.parts.Guard.Store.Now, host: h, known: map[string]knownToken{},
		looks: ratelimit.New[string](lookRate, lookBurst, addresses), wrong: ratelimit.New[string](wrongRate, wrongBurst, addresses),
	}
}

// ErrToken is what every token that is not valid is refused with.
var ErrToken = plugin.Errorf(plugin.CodeUnauthenticated, "the token is not valid; 'mortise tokens create' makes one")

// prove is [Authenticator.Token] for one that is not believed.
func (a *Authenticator) prove(ctx context.Context, text, hash, from string) (Caller, time.Time, error) {
	switch {
	case strings.HasPrefix(text, TokenPrefix):
		return a.check(ctx, text, hash, from)
	case a.Signed == nil:
		return Caller{}, time.Time{}, ErrToken
	}
	m, err := a.Signed(ctx, text)
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated {
		err = ErrToken
	}
	if err != nil {
		return Caller{}, time.Time{}, err
	}
	c, err := a.machine(ctx, &m)
	return c, m.Expires, err
}

// Token returns who presents a token from an address: one of this host, or of a provider.
// One error stands for every reason why it is not valid: unauthenticated. An address from which too many come that were not
// looked up just before gets rate_limited, and so does an id for which too many secrets come that are wrong, but at the address from
// which its token was used last: who guesses keeps no one from working. A token that is revoked is refused a second later at the latest.
func (a *Authenticator) Token(ctx context.Context, text, from string) (Caller, error) {
	hash := hashToken(text)
	if c, ok := a.believed(hash); ok {
		return c, nil
	}
	if wait := a.looks.Take(clientaddr.Group(from), 1, a.Now()); wait > 0 {
		return Caller{}, &plugin.Error{Code: plugin.CodeRateLimited, Message: "too many tokens come from this address", RetryAfter: wait}
	}
	a.mu.Lock()
	forgot := a.forgot
	a.mu.Unlock()
	c, expires, err := a.prove(ctx, text, hash, from)
	if err != nil {
		return Caller{}, err
	}
	a.looks.Give(clientaddr.Group(from), 1) // of many good ones an address may send as many as they are for
	until := a.Now().Add(believed)
	if !expires.IsZero() && expires.Before(until) {
		until = expires
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.forgot != forgot {
		return c, nil
	}
	if len(a.known) >= mostKnown {
		clear(a.known)
	}
	a.known[hash] = knownToken{c, until}
	return c, nil
}

// Forget has every token looked up again, as where the principals of the configuration
// changed.
func (a *Authenticator) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.known)
	a.forgot++
}

func (a *Authenticator) believed(hash string) (Caller, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.known[hash]
	if ok && a.Now().After(k.until) {
		delete(a.known, hash)
		ok = false
	}
	return k.Caller, ok
}

// check reads a token's row. The hash is compared also where there is no row, so that the
// time of the answer does not tell ids.
func (a *Authenticator) check(ctx context.Context, text, hash, from string) (c Caller, expires time.Time, err error) {
	id, formed := readToken(text)
	if !formed {
		return c, expires, ErrToken
	}
	row, err := a.host.parts.Guard.Store.Token(everywhere(ctx), id)
	if err != nil {
		return c, expires, err
	}
	there := row != nil
	if !there {
		row = &tokenRow{Hash: hashToken("none")}
	}
	same, now, known := subtle.ConstantTimeCompare([]byte(row.Hash), []byte(hash)) == 1, a.Now(), row.UsedFrom == from
	if !known && a.wrong.Left(id, now) < 1 {
		return c, expires, &plugin.Error{Code: plugin.CodeRateLimited, Message: "too many wrong secrets come for this token", RetryAfter: time.Second}
	}
	if !there || !same {
		a.wrong.Take(id, 1, now)
		return c, expires, ErrToken
	}
	if !row.RevokedAt.IsZero() || !row.ExpiresAt.IsZero() && !now.Before(row.ExpiresAt) {
		return c, expires, ErrToken
	}
	home, err := a.host.of(ctx, row.Tenant)
	if err != nil {
		return c, expires, err
	}
	g := home.parts.Guard
	who, err := g.Member(principal.Name(holderOf(row)))
	if err != nil { // the configuration does not name them any more
		return c, expires, ErrToken
	}
	if disabled, err := g.disabled(ctx, who); err != nil {
		return c, expires, err
	} else if disabled {
		return c, expires, ErrToken
	}
	if now.Sub(row.UsedAt) >= usePeriod {
		at := now.UTC().Truncate(time.Microsecond)
		_ = g.Store.Write(ctx, func(tx Tx) error { return tx.UseToken(row.Tenant, id, at, from) }) // it only says what happened: a store that takes no writes can be read
	}
	return Caller{Principal: who, Asker: askerOf(row), Token: id, Scopes: row.Scopes, Operations: row.Operations, hash: hash, home: home}, row.ExpiresAt, nil
}
