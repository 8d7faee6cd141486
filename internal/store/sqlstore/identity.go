package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const identityColumns = `tenant, provider, external_id, principal_type, principal_id, scopes, linked_by, linked_at, adapter, asker`

const putIdentity = `INSERT INTO identities (` + identityColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, provider, external_id) DO UPDATE SET principal_type = excluded.principal_type, principal_id = excluded.principal_id,
		scopes = excluded.scopes, linked_by = excluded.linked_by, linked_at = excluded.linked_at, adapter = excluded.adapter, asker = excluded.asker`

// Identity implements [store.Reader].
func (r *reader) Identity(ctx context.Context, tenant, provider, externalID string) (*store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.where("provider = ?", provider)
	q.where("external_id = ?", externalID)
	return one(rows(ctx, r, q, scanIdentity))
}

// Identities implements [store.Reader].
func (r *reader) Identities(ctx context.Context, tenant string) ([]store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.orderBy("provider, external_id")
	return all(rows(ctx, r, q, scanIdentity))
}

// IdentitiesOf implements [store.Reader].
func (r *reader) IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]store.IdentityRow, error) {
	q := selectFrom(identityColumns, "identities")
	q.where("tenant = ?", tenant)
	q.where("principal_type = ?", principalType)
	q.where("principal_id = ?", principalID)
	q.orderBy("provider, external_id")
	return all(rows(ctx, r, q, scanIdentity))
}

// PutIdentity implements [store.Tx].
func (t *tx) PutIdentity(r store.IdentityRow) error {
	scopes, err := t.array(r.Scopes)
	if err != nil {
		return err
	}
	_, err = t.Exec(putIdentity, r.Tenant, r.Provider, r.ExternalID, r.PrincipalType, r.PrincipalID, scopes, r.By, micros(r.At), r.Adapter, r.Asker)
	return err
}

// DeleteIdentity implements [store.Tx].
func (t *tx) DeleteIdentity(tenant, provider, externalID string) (bool, error) {
	return t.Exec(`DELETE FROM identities WHERE tenant = ? AND provider = ? AND external_id = ?`, tenant, provider, externalID)
}

func scanIdentity(rows *record, r *store.IdentityRow) error {
	var scopes string
	var at int64
	if err := rows.Scan(&r.Tenant, &r.Provider, &r.ExternalID, &r.PrincipalType, &r.PrincipalID, &scopes, &r.By, &at, &r.Adapter, &r.Asker); err != nil {
		return err
	}
	var err error
	if r.Scopes, err = fromArray(scopes); err != nil {
		return fmt.Errorf("scopes of %s on %s: %w", r.ExternalID, r.Provider, err)
	}
	r.At = fromMicros(at)
	return nil
}

const userColumns = `tenant, id, principal_type, principal_id, identities, invite_hash, invite_expires, created_by, created_at, disabled_at, invited_by`

const putUser = `INSERT INTO users (` + userColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (id) DO UPDATE SET principal_type = excluded.principal_type, principal_id = excluded.principal_id, identities = excluded.identities,
		invite_hash = excluded.invite_hash, invite_expires = excluded.invite_expires, created_by = excluded.created_by,
		created_at = excluded.created_at, disabled_at = excluded.disabled_at, invited_by = excluded.invited_by
	WHERE users.tenant = excluded.tenant`

// User implements [store.Reader].
func (r *reader) User(ctx context.Context, id string) (*store.UserRow, error) {
	q := selectFrom(userColumns, "users")
	q.of(ctx, r, "")
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanUser))
}

// Users implements [store.Reader].
func (r *reader) Users(ctx context.Context, tenant string) ([]store.UserRow, error) {
	q := selectFrom(userColumns, "users")
	q.where("tenant = ?", tenant)
	q.orderBy("id")
	return all(rows(ctx, r, q, scanUser))
}

// PutUser implements [store.Tx].
func (t *tx) PutUser(r store.UserRow) error {
	identities, err := json.Marshal(append([]store.UserIdentity{}, r.Identities...))
	if err != nil {
		return t.fail(err)
	}
	put, err := t.Exec(putUser, r.Tenant, r.ID, r.PrincipalType, r.PrincipalID, string(identities), r.InviteHash, micros(r.InviteExpires), r.By,
		micros(r.CreatedAt), micros(r.DisabledAt), r.InvitedBy)
	if err == nil && !put {
		return t.fail(fmt.Errorf("user %s belongs to another tenant", r.ID))
	}
	return err
}

func scanUser(rows *record, r *store.UserRow) error {
	var identities string
	var invite, created, disabled int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.PrincipalType, &r.PrincipalID, &identities, &r.InviteHash, &invite, &r.By, &created, &disabled, &r.InvitedBy); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(identities), &r.Identities); err != nil {
		return fmt.Errorf("identities of user %s: %w", r.ID, err)
	}
	r.InviteExpires, r.CreatedAt, r.DisabledAt = fromMicros(invite), fromMicros(created), fromMicros(disabled)
	return nil
}

// browserColumns are those that are signed; when a session was last used only happened.
const browserColumns = `tenant, id, hash, user_id, asker, created_at, signed_in_at, expires_at, given_groups`

// BrowserSession implements [store.Reader].
func (r *reader) BrowserSession(ctx context.Context, hash string) (*store.BrowserSessionRow, error) {
	q := selectFrom(browserColumns+", used_at, used_from", "browser_sessions")
	q.of(ctx, r, "")
	q.where("hash = ?", hash)
	return one(rows(ctx, r, q, scanBrowser))
}

// BrowserSessions implements [store.Reader].
func (r *reader) BrowserSessions(ctx context.Context, tenant string) ([]store.BrowserSessionRow, error) {
	q := selectFrom(browserColumns+", used_at, used_from", "browser_sessions")
	q.where("tenant = ?", tenant)
	q.orderBy("id")
	return all(rows(ctx, r, q, scanBrowser))
}

// InsertBrowserSession implements [store.Tx].
func (t *tx) InsertBrowserSession(r store.BrowserSessionRow) error {
	groups := ""
	if len(r.Given) > 0 {
		var err error
		if groups, err = t.array(r.Given); err != nil {
			return err
		}
	}
	_, err := t.Exec(`INSERT INTO browser_sessions (`+browserColumns+`, used_at, used_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')`,
		r.Tenant, r.ID, r.Hash, r.User, r.Asker, micros(r.CreatedAt), micros(r.SignedInAt), micros(r.ExpiresAt), groups)
	return err
}

// DeleteBrowserSession implements [store.Tx].
func (t *tx) DeleteBrowserSession(tenant, id string) (bool, error) {
	return t.Exec(`DELETE FROM browser_sessions WHERE tenant = ? AND id = ?`, tenant, id)
}

// UseBrowserSession implements [store.Tx].
func (t *tx) UseBrowserSession(tenant, id string, at time.Time, from string) error {
	_, err := t.Exec(`UPDATE browser_sessions SET used_at = ?, used_from = ? WHERE tenant = ? AND id = ?`, micros(at), from, tenant, id)
	return err
}

func scanBrowser(rows *record, r *store.BrowserSessionRow) error {
	var created, signed, expires, used int64
	var groups string
	if err := rows.Scan(&r.Tenant, &r.ID, &r.Hash, &r.User, &r.Asker, &created, &signed, &expires, &groups, &used, &r.UsedFrom); err != nil {
		return err
	}
	if groups != "" {
		var err error
		if r.Given, err = fromArray(groups); err != nil {
			return fmt.Errorf("groups of session %s: %w", r.ID, err)
		}
	}
	r.CreatedAt, r.SignedInAt, r.ExpiresAt, r.UsedAt = fromMicros(created), fromMicros(signed), fromMicros(expires), fromMicros(used)
	return nil
}

// tokenColumns are those that are signed; when a token was last used only happened.
const tokenColumns = `tenant, id, hash, name, principal_type, principal_id, scopes, operations, created_by, asker, created_at, expires_at, revoked_at`

const putToken = `INSERT INTO tokens (` + tokenColumns + `, used_at, used_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '')
	ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, name = excluded.name, principal_type = excluded.principal_type, principal_id = excluded.principal_id,
		scopes = excluded.scopes, operations = excluded.operations, created_by = excluded.created_by, asker = excluded.asker,
		created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at
	WHERE tokens.tenant = excluded.tenant`

// Token implements [store.Reader].
func (r *reader) Token(ctx context.Context, id string) (*store.TokenRow, error) {
	q := selectFrom(tokenColumns+", used_at, used_from", "tokens")
	q.of(ctx, r, "")
	q.where("id = ?", id)
	return one(rows(ctx, r, q, scanToken))
}

// Tokens implements [store.Reader].
func (r *reader) Tokens(ctx context.Context, tenant string) ([]store.TokenRow, error) {
	q := selectFrom(tokenColumns+", used_at, used_from", "tokens")
	q.where("tenant = ?", tenant)
	q.orderBy("id")
	return all(rows(ctx, r, q, scanToken))
}

// PutToken implements [store.Tx].
func (t *tx) PutToken(r store.TokenRow) error {
	scopes, err := t.array(r.Scopes)
	if err != nil {
		return err
	}
	operations, err := t.array(r.Operations)
	if err != nil {
		return err
	}
	put, err := t.Exec(putToken, r.Tenant, r.ID, r.Hash, r.Name, r.PrincipalType, r.PrincipalID, scopes, operations, r.By, r.Asker,
		micros(r.CreatedAt), micros(r.ExpiresAt), micros(r.RevokedAt))
	if err == nil && !put {
		return t.fail(fmt.Errorf("token %s belongs to another tenant", r.ID))
	}
	return err
}

// UseToken implements [store.Tx].
func (t *tx) UseToken(tenant, id string, at time.Time, from string) error {
	_, err := t.Exec(`UPDATE tokens SET used_at = ?, used_from = ? WHERE tenant = ? AND id = ?`, micros(at), from, tenant, id)
	return err
}

func scanToken(rows *record, r *store.TokenRow) error {
	var scopes, operations string
	var created, expires, revoked, used int64
	if err := rows.Scan(&r.Tenant, &r.ID, &r.Hash, &r.Name, &r.PrincipalType, &r.PrincipalID, &scopes, &operations, &r.By, &r.Asker,
		&created, &expires, &revoked, &used, &r.UsedFrom); err != nil {
		return err
	}
	var err error
	if r.Scopes, err = fromArray(scopes); err != nil {
		return fmt.Errorf("scopes of token %s: %w", r.ID, err)
	}
	if r.Operations, err = fromArray(operations); err != nil {
		return fmt.Errorf("operations of token %s: %w", r.ID, err)
	}
	r.CreatedAt, r.ExpiresAt, r.RevokedAt, r.UsedAt = fromMicros(created), fromMicros(expires), fromMicros(revoked), fromMicros(used)
	return nil
}
