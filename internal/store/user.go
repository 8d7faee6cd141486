package store

import (
	"context"
	"time"
)

// A UserRow is a person: the identities by which they are known are theirs for good, so
// that no two of them count as two people.
type UserRow struct {
	Tenant        string
	ID            string
	PrincipalType string // user or service; a principal has one person
	PrincipalID   string
	Identities    []UserIdentity
	InviteHash    string    // SHA-256 of the secret of an invitation that is open, in hexadecimal; "" if none is
	InviteExpires time.Time // zero if none is
	InvitedBy     string    // the asker who has seen that secret; see [plugin.Call]
	By            string    // the principal that created the user
	CreatedAt     time.Time
	DisabledAt    time.Time // zero while they may sign in
}

// A UserIdentity is one way in which a person was authenticated.
type UserIdentity struct {
	Asker      string    `json:"asker"`                // as calls and approvals have it; see [plugin.Call]
	Issuer     string    `json:"issuer,omitempty"`     // of OpenID Connect; "" for a user of the operating system
	Subject    string    `json:"subject,omitempty"`    // there
	LinkedAt   time.Time `json:"linked_at"`            //
	UnlinkedAt time.Time `json:"unlinked_at,omitzero"` // since when it signs no one in
	Seen       string    `json:"seen,omitempty"`       // the asker who has seen the secret of the invitation that linked it; "" where no one else has
}

// A UserReader reads users.
type UserReader interface {
	// User returns the user of an id, which belongs to one tenant alone.
	User(ctx context.Context, id string) (*UserRow, error)
	// Users returns all users of a tenant, by id.
	Users(ctx context.Context, tenant string) ([]UserRow, error)
}

// A UserWriter is what a transaction may do to them.
type UserWriter interface {
	// PutUser keeps a user, in place of an earlier one of its id and tenant.
	PutUser(row UserRow) error
}

// A BrowserSessionRow is a person who signed in with a browser.
type BrowserSessionRow struct {
	Tenant     string
	ID         string   // by which it is listed and revoked
	Hash       string   // SHA-256 of the secret in the cookie, in hexadecimal
	User       string   // id
	Asker      string   // the identity that signed in
	Given      []string // what the groups claim of its provider said, as package host writes it; nil for none
	CreatedAt  time.Time
	SignedInAt time.Time // when they last proved who they are
	ExpiresAt  time.Time
	UsedAt     time.Time // zero until it is used; not signed
	UsedFrom   string    // the address of that use; not signed
}

// A BrowserSessionReader reads the sessions of browsers.
type BrowserSessionReader interface {
	// BrowserSession returns the session whose secret has that hash.
	BrowserSession(ctx context.Context, hash string) (*BrowserSessionRow, error)
	// BrowserSessions returns all sessions of a tenant, by id.
	BrowserSessions(ctx context.Context, tenant string) ([]BrowserSessionRow, error)
}

// A BrowserSessionWriter is what a transaction may do to them.
type BrowserSessionWriter interface {
	// InsertBrowserSession keeps a session. One that there is already is an error.
	InsertBrowserSession(row BrowserSessionRow) error
	// DeleteBrowserSession reports whether there was such a session to delete.
	DeleteBrowserSession(tenant, id string) (found bool, err error)
	// UseBrowserSession records the last use of a session.
	UseBrowserSession(tenant, id string, at time.Time, from string) error
}
