package host

import (
	"context"
	"crypto/subtle"
	"maps"
	"net/url"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// UsersPlugin is what stands for the people themselves where policy is asked who may
// configure them.
const UsersPlugin = "mortise.users"

// Bounds of users.
const (
	maxUsers      = 10_000
	maxIdentities = 32   // of one user, with those that were unlinked
	maxSubject    = 1024 // bytes of an issuer or a subject

	// InviteLife is how long an invitation is open.
	InviteLife = 24 * time.Hour
)

// A User is a person: all their identities are one and the same where an approval takes a
// second person.
type User struct {
	ID           string         `json:"id"`
	Principal    string         `json:"principal"`  // as the configuration names them
	Identities   []UserIdentity `json:"identities"` // by which they are known, in the order they were linked
	By           string         `json:"by"`         // who created it
	CreatedAt    time.Time      `json:"created_at"`
	DisabledAt   time.Time      `json:"disabled_at,omitzero"`
	InvitedUntil time.Time      `json:"invited_until,omitzero"` // an invitation is open
	Groups       []string       `json:"groups,omitempty"`       // that providers gave where they are signed in with a browser now
}

// A UserIdentity is one way in which a person is authenticated.
type UserIdentity struct {
	Name       string    `json:"name"` // as approvals and tokens have it; what Unlink takes
	Issuer     string    `json:"issuer,omitempty"`
	Subject    string    `json:"subject,omitempty"`
	LinkedAt   time.Time `json:"linked_at"`
	UnlinkedAt time.Time `json:"unlinked_at,omitzero"` // since when it signs no one in; it stays theirs
	InvitedBy  string    `json:"invited_by,omitempty"` // who has seen the secret that linked it, and is no second person beside it; see [SignIns.Own]
}

// Users are the people of the host's tenant, for who may configure mortise.users. What is
// refused is on the record.
type Users struct {
	g      *Guard
	by     plugin.Principal
	asker  func() string
	caller *Caller
}

// Users returns the people.
func (a API) Users() Users { return Users{a.host.parts.Guard, a.by, a.asker, a.caller} }

// List returns all users, by principal.
func (u Users) List(ctx context.Context) ([]User, error) {
	if err := u.may(ctx, "list", ""); err != nil {
		return nil, err
	}
	rows, err := u.g.Store.Users(ctx, u.g.Tenant)
	if err != nil {
		return nil, err
	}
	all := make([]User, len(rows))
	for i := range rows {
		all[i] = userOf(&rows[i])
	}
	if err := u.given(ctx, all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b User) int { return strings.Compare(a.Principal, b.Principal) })
	return all, nil
}

// Show returns a user, whom their id or their principal names.
func (u Users) Show(ctx context.Context, name string) (User, error) {
	if err := u.may(ctx, "show", name); err != nil {
		return User{}, err
	}
	rows, err := u.g.Store.Users(ctx, u.g.Tenant)
	if err != nil {
		return User{}, err
	}
	row := named(rows, name)
	if row == nil {
		return User{}, missingUser(name)
	}
	one := []User{userOf(row)}
	err = u.given(ctx, one)
	return one[0], err
}

// given says which groups their providers gave to users where they are signed in.
func (u Users) given(ctx context.Context, users []User) error {
	open, err := u.g.Store.BrowserSessions(ctx, u.g.Tenant)
	for i := range users {
		for k := range open {
			if open[k].User == users[i].ID && (SignIns{g: u.g}).alive(&open[k], u.g.Store.Now()) && u.g.signsIn(&open[k]) {
				users[i].Groups = ordered(append(users[i].Groups, u.g.given(&open[k])...))
			}
		}
	}
	return err
}

// Create makes a user for a principal that the configuration names. osUser is a name or
// number of a user of the operating system that is them, "" for none; the owner who creates
// their own user is the user of the operating system who does. Errors: policy_denied,
// not_found, invalid_input, limit_exceeded.
func (u Users) Create(ctx context.Context, name, osUser string) (User, error) {
	if err := u.change(ctx, "create", name, principal.Parse(name)); err != nil {
		return User{}, err
	}
	who := principal.Parse(name)
	if !u.g.Known(u.g.Tenant, who) {
		return User{}, plugin.Errorf(plugin.CodeNotFound, "there is no principal %.255q; mortise.yaml names %s", name, strings.Join(u.g.now().names, ", "))
	}
	if who.Type == "agent" {
		return User{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is an agent, which acts through this host alone; a user is a person or a service", name)
	}
	asker, err := osAsker(osUser)
	if err != nil {
		return User{}, err
	}
	if asker != "" && asker == OSUser() && !u.g.administers(who) { // or the command line would have no owner any more
		return User{}, plugin.Errorf(plugin.CodeInvalidInput, "the user of the operating system %.64q runs this host as its owner, %s, and is no other principal", osUser, u.g.Owner)
	}
	if own := u.asker(); asker == "" && u.g.administers(who) && isOSUser(own) {
		asker = own
	}
	row := userRow{
		Tenant: u.g.Tenant, ID: randomText(10), PrincipalType: who.Type, PrincipalID: who.ID, By: principal.Name(u.by), CreatedAt: u.g.moment(), Identities: []userIdentity{},
	}
	err = u.g.Store.Write(ctx, func(tx Tx) error {
		all, err := tx.Users(ctx, row.Tenant)
		if err != nil {
			return err
		}
		if len(all) >= maxUsers {
			return plugin.Errorf(plugin.CodeLimitExceeded, "there are %d users, which is the most that are kept", maxUsers)
		}
		if named(all, principal.Name(who)) != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s has a user; 'mortise users show %s' shows them", name, name)
		}
		if asker != "" {
			if err := link(&row, all, userIdentity{Asker: asker, LinkedAt: row.CreatedAt}); err != nil {
				return err
			}
		}
		return u.put(tx, plugin.EntryUserCreated, &row, nil)
	})
	return userOf(&row), err
}

// Disable ends all sessions of a user and lets them sign in no more. Tokens of their
// principal are refused too.
func (u Users) Disable(ctx context.Context, name string) (User, error) {
	return u.edit(ctx, "disable", name, plugin.EntryUserDisabled, func(tx Tx, row *userRow, _ []userRow) (map[string]any, error) {
		if u.g.administers(personOf(row)) {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is the owner, who has the data directory whatever is said here", name)
		}
		row.InviteHash, row.InviteExpires, row.InvitedBy = "", time.Time{}, ""
		if row.DisabledAt.IsZero() {
			row.DisabledAt = u.g.moment()
		}
		return nil, u.endSessions(ctx, tx, row)
	})
}

// Enable lets a user sign in again.
func (u Users) Enable(ctx context.Context, name string) (User, error) {
	return u.edit(ctx, "enable", name, plugin.EntryUserEnabled, func(_ Tx, row *userRow, _ []userRow) (map[string]any, error) {
		row.DisabledAt = time.Time{}
		return nil, nil
	})
}

// Invite returns a secret by which the next who signs in and presents it becomes the user,
// once and within [InviteLife]. An earlier invitation ends.
func (u Users) Invite(ctx context.Context, name string) (User, string, error) {
	secret := randomText(43)
	v, err := u.edit(ctx, "invite", name, plugin.EntryUserInvited, func(_ Tx, row *userRow, _ []userRow) (map[string]any, error) {
		if !row.DisabledAt.IsZero() {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is disabled; 'mortise users enable %s' comes first", name, name)
		}
		row.InviteHash, row.InviteExpires, row.InvitedBy = hashToken(secret), u.g.moment().Add(InviteLife), u.asker()
		return map[string]any{"until": row.InviteExpires}, nil
	})
	if err != nil {
		secret = ""
	}
	return v, secret, err
}

// Unlink has an identity sign the user in no more, and ends the sessions that it began. It
// stays theirs: it is no second person beside them, and no other user can have it.
func (u Users) Unlink(ctx context.Context, name, identity string) (User, error) {
	return u.edit(ctx, "unlink", name, plugin.EntryUserUnlinked, func(tx Tx, row *userRow, _ []userRow) (map[string]any, error) {
		for i := range row.Identities {
			if id := &row.Identities[i]; id.Asker == identity && id.UnlinkedAt.IsZero() {
				id.UnlinkedAt = u.g.moment()
				row.InviteHash, row.InviteExpires, row.InvitedBy = "", time.Time{}, ""
				return map[string]any{"identity": identity}, u.endSessions(ctx, tx, row)
			}
		}
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s has no identity %.200q; 'mortise users show %s' shows them", name, identity, name)
	})
}

// edit changes a user in a transaction, with an entry.
func (u Users) edit(ctx context.Context, action, name string, kind plugin.EntryKind, do func(Tx, *userRow, []userRow) (map[string]any, error)) (User, error) {
	if err := u.change(ctx, action, name, u.target(ctx, name)); err != nil {
		return User{}, err
	}
	var row userRow
	err := u.g.Store.Write(ctx, func(tx Tx) error {
		row = userRow{}
		all, err := tx.Users(ctx, u.g.Tenant)
		if err != nil {
			return err
		}
		found := named(all, name)
		if found == nil {
			return missingUser(name)
		}
		row = *found
		body, err := do(tx, &row, all)
		if err != nil {
			return err
		}
		return u.put(tx, kind, &row, body)
	})
	return userOf(&row), err
}

// target is the principal whose user a name means, as far as that is known before it is
// known whether the caller may ask.
func (u Users) target(ctx context.Context, name string) plugin.Principal {
	if rows, err := u.g.Store.Users(ctx, u.g.Tenant); err == nil {
		if row := named(rows, name); row != nil {
			return personOf(row)
		}
	}
	return principal.Parse(name)
}

// may refuses who has no right to configure users.
func (u Users) may(ctx context.Context, action, subject string) error {
	return u.g.authorise(ctx, u.by, u.g.part(UsersPlugin), use{plugin.EntryUserRefused, subject, action, action + " users"})
}

// change is may for what changes the user of a principal: that of the owner is the
// owner's alone, and a sign-in has to be recent.
func (u Users) change(ctx context.Context, action, subject string, who plugin.Principal) error {
	if err := u.may(ctx, action, subject); err != nil {
		return err
	}
	if u.g.administers(who) && !u.g.administers(u.by) {
		why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not %s the user of the administrator", principal.Name(u.by), action)
		return u.g.refuse(ctx, u.by, use{plugin.EntryUserRefused, subject, action, ""}, why, plugin.Decision{})
	}
	if err := u.g.letsIn(ctx, u.caller, use{plugin.EntryUserRefused, subject, action, ""}); err != nil {
		return err
	}
	return u.g.recent(ctx, u.caller, use{plugin.EntryUserRefused, subject, action, ""})
}

func (u Users) put(tx Tx, kind plugin.EntryKind, row *userRow, body map[string]any) error {
	if err := tx.PutUser(*row); err != nil {
		return err
	}
	return u.g.noteUser(tx, u.by, kind, row, body)
}

// noteUser appends an entry about a user, with the identities that are theirs.
func (g *Guard) noteUser(tx Tx, by plugin.Principal, kind plugin.EntryKind, row *userRow, body map[string]any) error {
	noted := map[string]any{}
	maps.Copy(noted, body)
	noted["principal"], noted["identities"] = principal.Name(personOf(row)), userOf(row).Identities
	return g.Note(tx, by, kind, row.ID, noted)
}

// endSessions ends all sessions of a user.
func (u Users) endSessions(ctx context.Context, tx Tx, row *userRow) error {
	all, err := tx.BrowserSessions(ctx, row.Tenant)
	for i := range all {
		if err == nil && all[i].User == row.ID {
			_, err = tx.DeleteBrowserSession(row.Tenant, all[i].ID)
		}
	}
	return err
}

// link makes an identity a user's. One that is or was another's is refused.
func link(row *userRow, all []userRow, id userIdentity) error {
	if owner := ownerOf(all, id.Asker); owner != nil && owner.ID != row.ID {
		return plugin.Errorf(plugin.CodeInvalidInput, "that identity is, or was, of another user")
	}
	for i := range row.Identities {
		if row.Identities[i].Asker == id.Asker {
			if !row.Identities[i].UnlinkedAt.IsZero() {
				row.Identities[i].UnlinkedAt, row.Identities[i].Seen = time.Time{}, id.Seen
			}
			return nil
		}
	}
	if len(row.Identities) >= maxIdentities {
		return plugin.Errorf(plugin.CodeLimitExceeded, "a user has at most %d identities", maxIdentities)
	}
	row.Identities = append(row.Identities, id)
	return nil
}

// ownerOf returns the user whose an identity is or was, nil if there is none.
func ownerOf(all []userRow, asker string) *userRow {
	for i := range all {
		if userAsker(personOf(&all[i])) == asker || slices.ContainsFunc(all[i].Identities, func(id userIdentity) bool { return id.Asker == asker }) {
			return &all[i]
		}
	}
	return nil
}

// invited returns the user whom an invitation is for, nil if it is not open.
func invited(all []userRow, secret string, now time.Time) (found *userRow) {
	hash := []byte(hashToken(secret))
	for i := range all {
		if subtle.ConstantTimeCompare([]byte(all[i].InviteHash), hash) == 1 && now.Before(all[i].InviteExpires) && all[i].DisabledAt.IsZero() {
			found = &all[i]
		}
	}
	return found
}

func named(all []userRow, name string) *userRow {
	for i := range all {
		if all[i].ID == name || principal.Name(personOf(&all[i])) == principal.Name(principal.Parse(name)) {
			return &all[i]
		}
	}
	return nil
}

func personOf(row *userRow) plugin.Principal {
	return plugin.Principal{Type: row.PrincipalType, ID: row.PrincipalID}
}

func userOf(row *userRow) User {
	v := User{
		ID: row.ID, Principal: principal.Name(personOf(row)), Identities: []UserIdentity{}, By: row.By, CreatedAt: row.CreatedAt, DisabledAt: row.DisabledAt,
	}
	for _, id := range row.Identities {
		v.Identities = append(v.Identities, UserIdentity{Name: id.Asker, Issuer: id.Issuer, Subject: id.Subject, LinkedAt: id.LinkedAt, UnlinkedAt: id.UnlinkedAt, InvitedBy: id.Seen})
	}
	if row.InviteHash != "" && time.Now().Before(row.InviteExpires) {
		v.InvitedUntil = row.InviteExpires
	}
	return v
}

func missingUser(name string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no user %.64s; 'mortise users list' shows those there are", name)
}

// osAsker is the identity of a user of the operating system, by name or number.
func osAsker(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return "", plugin.Errorf(plugin.CodeNotFound, "the operating system has no user %.64q", name)
	}
	return "os:" + found.Uid, nil
}

// isOSUser reports whether an asker is one user of the operating system.
func isOSUser(asker string) bool {
	return strings.HasPrefix(asker, "os:") && !strings.Contains(asker, " ")
}

// oidcPrefix begins the identity of every subject of a provider.
const oidcPrefix = "oidc:"

// oidcAsker is the identity of a subject of an OpenID Connect issuer.
func oidcAsker(issuer, subject string) string {
	return oidcPrefix + url.PathEscape(issuer) + "/" + url.PathEscape(subject)
}

// moment returns the time by the clock that all nodes share, as the store keeps it.
func (g *Guard) moment() time.Time { return g.Store.Now().UTC().Truncate(time.Microsecond) }
