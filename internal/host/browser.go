package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of the sessions of browsers.
const (
	SessionIdle = 12 * time.Hour     // after which one that is not used ends
	SessionLife = 7 * 24 * time.Hour // after which any ends

	maxBrowsers    = 32     // sessions of one user; the oldest ends for the next
	maxAllBrowsers = 10_000 // of all
	browserSecret  = 43     // characters, of 62: 256 bits
)

// A BrowserSession is a browser in which a person is signed in.
type BrowserSession struct {
	ID         string    `json:"id"`
	Current    bool      `json:"current"`  // of this request
	Identity   string    `json:"identity"` // that signed in
	Groups     []string  `json:"groups"`   // that its provider gave, beside those of mortise.yaml
	CreatedAt  time.Time `json:"created_at"`
	SignedInAt time.Time `json:"signed_in_at,omitzero"` // zero where the provider does not say
	ExpiresAt  time.Time `json:"expires_at"`
	UsedAt     time.Time `json:"used_at,omitzero"` // to the minute
	UsedFrom   string    `json:"used_from,omitempty"`
}

// Browsers are the browsers in which the user of a principal is signed in.
type Browsers struct {
	g      *Guard
	by     plugin.Principal
	caller *Caller
}

// Browsers returns the browsers in which they are signed in.
func (a API) Browsers() Browsers { return Browsers{a.host.parts.Guard, a.by, a.caller} }

// List returns their sessions, the newest first.
func (b Browsers) List(ctx context.Context) ([]BrowserSession, error) {
	listed := []BrowserSession{}
	rows, err := b.own(ctx)
	for _, row := range rows {
		listed = append(listed, BrowserSession{
			ID: row.ID, Current: b.caller != nil && b.caller.Session == row.ID, Identity: row.Asker, Groups: append([]string{}, b.g.given(&row)...), CreatedAt: row.CreatedAt, SignedInAt: row.SignedInAt,
			ExpiresAt: row.ExpiresAt, UsedAt: row.UsedAt, UsedFrom: row.UsedFrom,
		})
	}
	slices.SortFunc(listed, func(x, y BrowserSession) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return listed, err
}

// End ends one of their sessions. Of others there is none: not_found, on the record.
func (b Browsers) End(ctx context.Context, id string) error {
	rows, err := b.own(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rows, func(row browserRow) bool { return row.ID == id }) {
		why := plugin.Errorf(plugin.CodeNotFound, "there is no session %.64s", id)
		return b.g.refuse(ctx, b.by, use{kind: plugin.EntryUserRefused, subject: id, action: "end session"}, why, plugin.Decision{})
	}
	return b.g.endBrowser(ctx, b.by, id)
}

func (b Browsers) own(ctx context.Context) (own []browserRow, err error) {
	users, err := b.g.Store.Users(ctx, b.g.Tenant)
	if err != nil {
		return nil, err
	}
	me := named(users, principal.Name(b.by))
	if me == nil {
		return nil, nil
	}
	rows, err := b.g.Store.BrowserSessions(ctx, b.g.Tenant)
	return slices.DeleteFunc(rows, func(row browserRow) bool { return row.User != me.ID || !b.g.Store.Now().Before(row.ExpiresAt) }), err
}

// endBrowser deletes a session, with an entry where there was one.
func (g *Guard) endBrowser(ctx context.Context, by plugin.Principal, id string) error {
	return g.Store.Write(ctx, func(tx Tx) error {
		found, err := tx.DeleteBrowserSession(g.Tenant, id)
		if err != nil || !found {
			return err
		}
		return g.Note(tx, by, plugin.EntrySignedOut, id, map[string]any{})
	})
}

// SignIns begins, finds and ends the sessions of browsers. It is safe for concurrent use.
type SignIns struct {
	home *Host
	g    *Guard // of home
}

// SignIns returns what signs people in.
func (h *Host) SignIns() SignIns { return SignIns{h, h.parts.Guard} }

// A SignIn is a person who has proved who they are.
type SignIn struct {
	Issuer, Subject string // of OpenID Connect, as the ID token has them; email addresses are no identity
	Invitation      string // the secret of an invitation that they presented, or ""
	Replaces        string // the secret of the session that the browser had, or ""

	At    time.Time // when they proved who they are; zero where the provider does not say, which counts as long ago
	Given []string  // what its groups claim says; see [SaidGroups]
}

// Begin signs in the user whom an issuer's subject belongs to, or becomes by an open
// invitation, and returns the secret of the new session. The session that it replaces ends.
// Errors: unauthenticated where the subject is no user's, or the invitation not open.
func (s SignIns) Begin(ctx context.Context, in SignIn) (secret string, expires time.Time, err error) {
	if in.Issuer == "" || in.Subject == "" || len(in.Issuer) > maxSubject || len(in.Subject) > maxSubject {
		return "", expires, plugin.Errorf(plugin.CodeUnauthenticated, "the provider names no subject that can be kept")
	}
	asker := oidcAsker(in.Issuer, in.Subject)
	if s, err = s.whither(ctx, in, asker); err != nil {
		return "", expires, err
	}
	var refusal error
	var subject plugin.Principal
	err = s.g.Store.Write(ctx, func(tx Tx) error {
		secret, expires, refusal, subject = "", time.Time{}, nil, plugin.Principal{} // a transaction may be tried again
		users, err := tx.Users(ctx, s.g.Tenant)
		if err != nil {
			return err
		}
		if in.Invitation != "" {
			if err := s.nowhereElse(ctx, tx, asker); plugin.CodeOf(err) == plugin.CodeUnauthenticated {
				refusal = err
				return nil
			} else if err != nil {
				return err
			}
		}
		var row *userRow
		if row, refusal, err = s.whose(tx, users, in, asker); err != nil || refusal != nil {
			return err
		}
		subject = personOf(row)
		secret, expires, err = s.begin(ctx, tx, row, asker, in)
		return err
	})
	if err != nil {
		return "", expires, err
	}
	if refusal != nil {
		return "", expires, s.g.refuse(ctx, subject, use{kind: plugin.EntryUserRefused, subject: asker, action: "sign in"}, plugin.AsError(refusal), plugin.Decision{})
	}
	return secret, expires, nil
}

// whose returns the user of an identity, and links it where an invitation says so. refusal
// is why they are not signed in.
func (s SignIns) whose(tx Tx, users []userRow, in SignIn, asker string) (user *userRow, refusal, err error) {
	if in.Invitation != "" {
		row := invited(users, in.Invitation, s.g.Store.Now())
		if row == nil {
			return nil, plugin.Errorf(plugin.CodeUnauthenticated, "the invitation is not open any more: it was used, replaced or has expired"), nil
		}
		id := userIdentity{Asker: asker, Issuer: in.Issuer, Subject: in.Subject, LinkedAt: s.g.moment(), Seen: row.InvitedBy}
		if refusal := link(row, users, id); refusal != nil {
			return nil, refusal, nil
		}
		row.InviteHash, row.InviteExpires, row.InvitedBy = "", time.Time{}, ""
		if err := tx.PutUser(*row); err != nil {
			return nil, nil, err
		}
		return row, nil, s.g.noteUser(tx, personOf(row), plugin.EntryUserLinked, row, map[string]any{"identity": asker, "invited_by": id.Seen})
	}
	for i := range users {
		for _, id := range users[i].Identities {
			if id.Asker == asker && id.UnlinkedAt.IsZero() && users[i].DisabledAt.IsZero() {
				return &users[i], nil, nil
			}
		}
	}
	return nil, plugin.Errorf(plugin.CodeUnauthenticated, "this account is no user's of this host"), nil
}

// BeginOwner signs in the owner, as the user of the operating system that runs this
// process, and makes their user where there is none.
func (s SignIns) BeginOwner(ctx context.Context, replaces string) (secret string, expires time.Time, err error) {
	asker, owner := OSUser(), principal.Parse(s.g.Owner)
	err = s.g.Store.Write(ctx, func(tx Tx) error {
		secret, expires = "", time.Time{}
		users, err := tx.Users(ctx, s.g.Tenant)
		if err != nil {
			return err
		}
		row := named(users, s.g.Owner)
		if row == nil {
			row = &userRow{Tenant: s.g.Tenant, ID: randomText(10), PrincipalType: owner.Type, PrincipalID: owner.ID, By: principal.Name(owner), CreatedAt: s.g.moment()}
			if isOSUser(asker) {
				if err := link(row, users, userIdentity{Asker: asker, LinkedAt: row.CreatedAt}); err != nil {
					return err
				}
			}
			if err := tx.PutUser(*row); err != nil {
				return err
			}
			if err := s.g.noteUser(tx, owner, plugin.EntryUserCreated, row, nil); err != nil {
				return err
			}
		}
		secret, expires, err = s.begin(ctx, tx, row, asker, SignIn{Replaces: replaces, At: s.g.Store.Now()})
		return err
	})
	return secret, expires, err
}

// begin makes a session of a user's, and room for it.
func (s SignIns) begin(ctx context.Context, tx Tx, user *userRow, asker string, in SignIn) (secret string, expires time.Time, err error) {
	all, err := tx.BrowserSessions(ctx, s.g.Tenant)
	if err != nil {
		return "", expires, err
	}
	now := s.g.moment()
	var own []browserRow
	left := 0
	for i := range all {
		row := &all[i]
		if row.Hash == hashToken(in.Replaces) || !s.alive(row, now) {
			if _, err := tx.DeleteBrowserSession(row.Tenant, row.ID); err != nil {
				return "", expires, err
			}
			continue
		}
		left++
		if row.User == user.ID {
			own = append(own, *row)
		}
	}
	if left >= maxAllBrowsers {
		return "", expires, plugin.Errorf(plugin.CodeLimitExceeded, "%d browsers are signed in, which is the most there can be", left)
	}
	if len(own) >= maxBrowsers {
		oldest := slices.MinFunc(own, func(a, b browserRow) int { return a.CreatedAt.Compare(b.CreatedAt) })
		if _, err := tx.DeleteBrowserSession(oldest.Tenant, oldest.ID); err != nil {
			return "", expires, err
		}
	}
	secret = randomText(browserSecret)
	signedIn := in.At.UTC().Truncate(time.Microsecond)
	if in.At.After(now) {
		signedIn = now
	}
	row := browserRow{
		Tenant: s.g.Tenant, ID: randomText(10), Hash: hashToken(secret), User: user.ID, Asker: asker, CreatedAt: now, SignedInAt: signedIn, ExpiresAt: now.Add(SessionLife), Given: givenBy(in.Given),
	}
	if err := tx.InsertBrowserSession(row); err != nil {
		return "", expires, err
	}
	return secret, row.ExpiresAt, s.g.Note(tx, personOf(user), plugin.EntrySignedIn, row.ID, s.g.signInEvidence(&row))
}

// alive reports whether a session has not ended by itself.
func (s SignIns) alive(row *browserRow, now time.Time) bool {
	used := row.CreatedAt
	if row.UsedAt.After(used) {
		used = row.UsedAt
	}
	return now.Before(row.ExpiresAt) && now.Sub(used) < SessionIdle
}

// Caller returns who a session's secret stands for, from an address: unauthenticated where
// it is none, has ended, or its user is disabled.
func (s SignIns) Caller(ctx context.Context, secret, from string) (Caller, error) {
	row, user, err := s.find(ctx, secret)
	if err != nil {
		return Caller{}, err
	}
	home, err := s.home.of(ctx, row.Tenant)
	if err != nil {
		return Caller{}, err
	}
	g := home.parts.Guard
	who, err := g.Member(principal.Name(personOf(user)))
	if err != nil { // the configuration does not name them any more
		return Caller{}, errSession
	}
	if now := g.Store.Now(); now.Sub(row.UsedAt) >= usePeriod {
		at := now.UTC().Truncate(time.Microsecond)
		_ = g.Store.Write(ctx, func(tx Tx) error { return tx.UseBrowserSession(row.Tenant, row.ID, at, from) }) // it only says what happened
	}
	who.Groups = g.given(row)
	asker := askerIn(row, user)
	return Caller{Principal: who, Asker: asker, Invited: asker != row.Asker, Session: row.ID, SignedInAt: row.SignedInAt, Scopes: Scopes, home: home}, nil
}

// End ends the session of a secret, where there is one.
func (s SignIns) End(ctx context.Context, secret string) error {
	row, user, err := s.find(ctx, secret)
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated {
		return nil
	}
	if err != nil {
		return err
	}
	home, err := s.home.of(ctx, row.Tenant)
	if err != nil {
		return err
	}
	return home.parts.Guard.endBrowser(ctx, personOf(user), row.ID)
}

var errSession = plugin.Errorf(plugin.CodeUnauthenticated, "no one is signed in; sign in at /auth/sign-in")

// find returns the session of a secret that is in force, with its user.
func (s SignIns) find(ctx context.Context, secret string) (*browserRow, *userRow, error) {
	if len(secret) != browserSecret || strings.Trim(secret, alphabet) != "" { // it cannot be one
		return nil, nil, errSession
	}
	row, err := s.g.Store.BrowserSession(everywhere(ctx), hashToken(secret))
	if err != nil {
		return nil, nil, err
	}
	if row == nil || !s.alive(row, s.g.Store.Now()) || !s.g.signsIn(row) {
		return nil, nil, errSession
	}
	user, err := s.g.Store.User(everywhere(ctx), row.User)
	if err != nil {
		return nil, nil, err
	}
	if user == nil || user.Tenant != row.Tenant || !user.DisabledAt.IsZero() {
		return nil, nil, errSession
	}
	return row, user, nil
}

// None reports whether there are no users.
func (s SignIns) None(ctx context.Context) (bool, error) {
	users, err := s.g.Store.Users(ctx, s.g.Tenant)
	return len(users) == 0, err
}

// signInEvidence is what the ledger keeps of a session that begins.
func (g *Guard) signInEvidence(row *browserRow) map[string]any {
	body := map[string]any{"identity": row.Asker, "user": row.User}
	if groups := g.given(row); len(groups) > 0 {
		body["groups"] = groups
	}
	return body
}

// askerIn returns the identity that is signed in, and with it who else has seen the secret
// by which it became the user's.
func askerIn(row *browserRow, user *userRow) string {
	for _, id := range user.Identities {
		if id.Asker == row.Asker {
			return approval.Entrusted(id.Asker, id.Seen)
		}
	}
	return row.Asker
}

// Own has the user of a session say that the account with which they are signed in is
// theirs alone. Who invited them is a second person beside it from then on. It takes a recent
// sign-in, and is on the record. Errors: unauthenticated, sign_in_required.
func (s SignIns) Own(ctx context.Context, secret string) error {
	row, user, err := s.find(ctx, secret)
	if err != nil {
		return err
	}
	c := &Caller{Principal: personOf(user), Session: row.ID, SignedInAt: row.SignedInAt}
	if err := s.g.recent(ctx, c, use{plugin.EntryUserRefused, user.ID, "own", ""}); err != nil {
		return err
	}
	return s.g.Store.Write(ctx, func(tx Tx) error {
		now, err := tx.User(ctx, user.ID)
		if err != nil || now == nil {
			return orElse(err, errSession)
		}
		for i := range now.Identities {
			if id := &now.Identities[i]; id.Asker == row.Asker && id.UnlinkedAt.IsZero() && id.Seen != "" {
				by := id.Seen
				id.Seen = ""
				if err := tx.PutUser(*now); err != nil {
					return err
				}
				return s.g.noteUser(tx, personOf(now), plugin.EntryUserLinked, now, map[string]any{"identity": row.Asker, "own": true, "invited_by": by})
			}
		}
		return nil
	})
}
