package store

import (
	"context"
	"fmt"
)

// Authorised returns a store whose rows that decide authority are held against the
// ledger each time they are read. dir has the key.
func Authorised(st Store, dir string) Store {
	// Rows that bear a MAC of their own need no moment to be checked in.
	return &authorised{newAuthorisedReader(st, dir).Verified, st, dir}
}

type authorised struct {
	Verified
	Writer
	dir string
}

// Held says what a store with a lease says of it.
func (s *authorised) Held() error {
	if st, leased := s.Writer.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}

// Snapshot implements [Store].
func (s *authorised) Snapshot(ctx context.Context, fn func(Reader) error) error {
	return s.Writer.Snapshot(ctx, func(r Reader) error { return fn(newAuthorisedReader(r, s.dir)) })
}

// checked reads rows of tables in one snapshot with the check of those.
func checked[T any](ctx context.Context, s *authorised, read func(Reader) (T, error)) (got T, err error) {
	err = s.Snapshot(ctx, func(r Reader) (err error) { got, err = read(r); return err })
	return got, err
}

// Policies implements [Reader].
func (s *authorised) Policies(ctx context.Context, tenant string) ([]PolicyRow, error) {
	return checked(ctx, s, func(r Reader) ([]PolicyRow, error) { return r.Policies(ctx, tenant) })
}

// Plugin implements [Reader].
func (s *authorised) Plugin(ctx context.Context, name, version string) (*PluginRow, error) {
	return checked(ctx, s, func(r Reader) (*PluginRow, error) { return r.Plugin(ctx, name, version) })
}

// Plugins implements [Reader].
func (s *authorised) Plugins(ctx context.Context) ([]PluginRow, error) {
	return checked(ctx, s, func(r Reader) ([]PluginRow, error) { return r.Plugins(ctx) })
}

// Tenants implements [Reader].
func (s *authorised) Tenants(ctx context.Context) ([]TenantRow, error) {
	return checked(ctx, s, func(r Reader) ([]TenantRow, error) { return r.Tenants(ctx) })
}

// TenantPlugins implements [Reader].
func (s *authorised) TenantPlugins(ctx context.Context, tenant string) ([]PluginRow, error) {
	return checked(ctx, s, func(r Reader) ([]PluginRow, error) { return r.TenantPlugins(ctx, tenant) })
}

// Identity implements [Reader].
func (s *authorised) Identity(ctx context.Context, tenant, provider, externalID string) (*IdentityRow, error) {
	return checked(ctx, s, func(r Reader) (*IdentityRow, error) { return r.Identity(ctx, tenant, provider, externalID) })
}

// Identities implements [Reader].
func (s *authorised) Identities(ctx context.Context, tenant string) ([]IdentityRow, error) {
	return checked(ctx, s, func(r Reader) ([]IdentityRow, error) { return r.Identities(ctx, tenant) })
}

// IdentitiesOf implements [Reader].
func (s *authorised) IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]IdentityRow, error) {
	return checked(ctx, s, func(r Reader) ([]IdentityRow, error) { return r.IdentitiesOf(ctx, tenant, principalType, principalID) })
}

// Token implements [Reader].
func (s *authorised) Token(ctx context.Context, id string) (*TokenRow, error) {
	return checked(ctx, s, func(r Reader) (*TokenRow, error) { return r.Token(ctx, id) })
}

// Tokens implements [Reader].
func (s *authorised) Tokens(ctx context.Context, tenant string) ([]TokenRow, error) {
	return checked(ctx, s, func(r Reader) ([]TokenRow, error) { return r.Tokens(ctx, tenant) })
}

// User implements [Reader].
func (s *authorised) User(ctx context.Context, id string) (*UserRow, error) {
	return checked(ctx, s, func(r Reader) (*UserRow, error) { return r.User(ctx, id) })
}

// Users implements [Reader].
func (s *authorised) Users(ctx context.Context, tenant string) ([]UserRow, error) {
	return checked(ctx, s, func(r Reader) ([]UserRow, error) { return r.Users(ctx, tenant) })
}

// BrowserSession implements [Reader].
func (s *authorised) BrowserSession(ctx context.Context, hash string) (*BrowserSessionRow, error) {
	return checked(ctx, s, func(r Reader) (*BrowserSessionRow, error) { return r.BrowserSession(ctx, hash) })
}

// BrowserSessions implements [Reader].
func (s *authorised) BrowserSessions(ctx context.Context, tenant string) ([]BrowserSessionRow, error) {
	return checked(ctx, s, func(r Reader) ([]BrowserSessionRow, error) { return r.BrowserSessions(ctx, tenant) })
}

// Agent implements [Reader].
func (s *authorised) Agent(ctx context.Context, tenant, id string) (*AgentRow, error) {
	return checked(ctx, s, func(r Reader) (*AgentRow, error) { return r.Agent(ctx, tenant, id) })
}

// Agents implements [Reader].
func (s *authorised) Agents(ctx context.Context, tenant string) ([]AgentRow, error) {
	return checked(ctx, s, func(r Reader) ([]AgentRow, error) { return r.Agents(ctx, tenant) })
}

// Assignments implements [Reader].
func (s *authorised) Assignments(ctx context.Context, tenant string) ([]AssignmentRow, error) {
	return checked(ctx, s, func(r Reader) ([]AssignmentRow, error) { return r.Assignments(ctx, tenant) })
}

// Schedule implements [Reader].
func (s *authorised) Schedule(ctx context.Context, tenant, id string) (*ScheduleRow, error) {
	return checked(ctx, s, func(r Reader) (*ScheduleRow, error) { return r.Schedule(ctx, tenant, id) })
}

// Approvals implements [Reader].
func (s *authorised) Approvals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error) {
	return checked(ctx, s, func(r Reader) ([]ApprovalRow, error) { return r.Approvals(ctx, f) })
}

// Approval implements [Reader].
func (s *authorised) Approval(ctx context.Context, tenant, id string) (*ApprovalRow, error) {
	return checked(ctx, s, func(r Reader) (*ApprovalRow, error) { return r.Approval(ctx, tenant, id) })
}

// ApprovalByToken implements [Reader].
func (s *authorised) ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error) {
	return checked(ctx, s, func(r Reader) (*ApprovalRow, error) { return r.ApprovalByToken(ctx, tenant, tokenHash) })
}

// CallToRun implements [Reader].
func (s *authorised) CallToRun(ctx context.Context, tenant, id string) (*CallRow, error) {
	return checked(ctx, s, func(r Reader) (*CallRow, error) { return r.CallToRun(ctx, tenant, id) })
}

// PlanToRun implements [Reader].
func (s *authorised) PlanToRun(ctx context.Context, tenant, id string) (*PlanRow, error) {
	return checked(ctx, s, func(r Reader) (*PlanRow, error) { return r.PlanToRun(ctx, tenant, id) })
}

// An authorisedReader is of one moment: it checks a table before it reads of it.
type authorisedReader struct {
	Verified
	dir string
}

func newAuthorisedReader(from Reader, dir string) *authorisedReader {
	r := &authorisedReader{dir: dir}
	r.Verified = Verified{from, r}
	return r
}

func (r *authorisedReader) check(ctx context.Context, table string) error {
	key, err := r.key(ctx)
	if err != nil {
		return err
	}
	return CheckAuthority(ctx, r.Reader, key, table)
}

// key returns the ledger's key, nil where there is no ledger yet, and so no rows.
func (r *authorisedReader) key(ctx context.Context) (*Key, error) {
	key, err := ReadKey(r.dir)
	if err == nil {
		return key, nil
	}
	heads, headsErr := r.Chains(ctx)
	if headsErr == nil && len(heads) > 0 {
		headsErr = fmt.Errorf("what decides authority cannot be held against the ledger: %w", err)
	}
	return nil, headsErr
}

// Verify implements [Verifier].
func (r *authorisedReader) Verify(ctx context.Context, earlier func(context.Context, Reader, *Key) (bool, error), check func(*Key) error) error {
	key, err := r.key(ctx)
	if err != nil || key == nil {
		return err
	}
	wrong := check(key)
	if wrong == nil {
		return nil
	}
	if none, err := earlier(ctx, r.Reader, key); err != nil || none {
		return err
	}
	return wrong
}

// read is a read of a table that was checked.
func read[T any](ctx context.Context, r *authorisedReader, table string, get func() (T, error)) (got T, err error) {
	if err := r.check(ctx, table); err != nil {
		return got, err
	}
	return get()
}

// Policies implements [Reader].
func (r *authorisedReader) Policies(ctx context.Context, tenant string) ([]PolicyRow, error) {
	return read(ctx, r, "policies", func() ([]PolicyRow, error) { return r.Reader.Policies(ctx, tenant) })
}

// Plugin implements [Reader].
func (r *authorisedReader) Plugin(ctx context.Context, name, version string) (*PluginRow, error) {
	return read(ctx, r, "plugins", func() (*PluginRow, error) { return r.Reader.Plugin(ctx, name, version) })
}

// Plugins implements [Reader].
func (r *authorisedReader) Plugins(ctx context.Context) ([]PluginRow, error) {
	return read(ctx, r, "plugins", func() ([]PluginRow, error) { return r.Reader.Plugins(ctx) })
}

// Tenants implements [Reader].
func (r *authorisedReader) Tenants(ctx context.Context) ([]TenantRow, error) {
	return read(ctx, r, "tenants", func() ([]TenantRow, error) { return r.Reader.Tenants(ctx) })
}

// TenantPlugins implements [Reader].
func (r *authorisedReader) TenantPlugins(ctx context.Context, tenant string) ([]PluginRow, error) {
	return read(ctx, r, "tenant_plugins", func() ([]PluginRow, error) { return r.Reader.TenantPlugins(ctx, tenant) })
}

// Identity implements [Reader].
func (r *authorisedReader) Identity(ctx context.Context, tenant, provider, externalID string) (*IdentityRow, error) {
	return read(ctx, r, "identities", func() (*IdentityRow, error) { return r.Reader.Identity(ctx, tenant, provider, externalID) })
}

// Identities implements [Reader].
func (r *authorisedReader) Identities(ctx context.Context, tenant string) ([]IdentityRow, error) {
	return read(ctx, r, "identities", func() ([]IdentityRow, error) { return r.Reader.Identities(ctx, tenant) })
}

// IdentitiesOf implements [Reader].
func (r *authorisedReader) IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]IdentityRow, error) {
	return read(ctx, r, "identities", func() ([]IdentityRow, error) {
		return r.Reader.IdentitiesOf(ctx, tenant, principalType, principalID)
	})
}

// Token implements [Reader].
func (r *authorisedReader) Token(ctx context.Context, id string) (*TokenRow, error) {
	return read(ctx, r, "tokens", func() (*TokenRow, error) { return r.Reader.Token(ctx, id) })
}

// Tokens implements [Reader].
func (r *authorisedReader) Tokens(ctx context.Context, tenant string) ([]TokenRow, error) {
	return read(ctx, r, "tokens", func() ([]TokenRow, error) { return r.Reader.Tokens(ctx, tenant) })
}

// Agent implements [Reader].
func (r *authorisedReader) Agent(ctx context.Context, tenant, id string) (*AgentRow, error) {
	return read(ctx, r, "agents", func() (*AgentRow, error) { return r.Reader.Agent(ctx, tenant, id) })
}

// Agents implements [Reader].
func (r *authorisedReader) Agents(ctx context.Context, tenant string) ([]AgentRow, error) {
	return read(ctx, r, "agents", func() ([]AgentRow, error) { return r.Reader.Agents(ctx, tenant) })
}

// Assignments implements [Reader].
func (r *authorisedReader) Assignments(ctx context.Context, tenant string) ([]AssignmentRow, error) {
	return read(ctx, r, "assignments", func() ([]AssignmentRow, error) { return r.Reader.Assignments(ctx, tenant) })
}

// Schedule implements [Reader].
func (r *authorisedReader) Schedule(ctx context.Context, tenant, id string) (*ScheduleRow, error) {
	return read(ctx, r, "schedules", func() (*ScheduleRow, error) { return r.Reader.Schedule(ctx, tenant, id) })
}

// Approval implements [Reader].
func (r *authorisedReader) Approval(ctx context.Context, tenant, id string) (*ApprovalRow, error) {
	return read(ctx, r, "approvals", func() (*ApprovalRow, error) { return r.Verified.Approval(ctx, tenant, id) })
}

// ApprovalByToken implements [Reader].
func (r *authorisedReader) ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error) {
	return read(ctx, r, "approvals", func() (*ApprovalRow, error) { return r.Verified.ApprovalByToken(ctx, tenant, tokenHash) })
}

// Approvals implements [Reader].
func (r *authorisedReader) Approvals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error) {
	return read(ctx, r, "approvals", func() ([]ApprovalRow, error) { return r.Verified.Approvals(ctx, f) })
}

// CallToRun implements [Reader]. Where the host is in recovery is held against the
// ledger too: then what has effects does not go on.
func (r *authorisedReader) CallToRun(ctx context.Context, tenant, id string) (*CallRow, error) {
	key, err := r.key(ctx)
	if err != nil {
		return nil, err
	}
	if err := CheckAuthority(ctx, r.Reader, key, "kv"); err != nil {
		return nil, err
	}
	row, err := r.Reader.CallToRun(ctx, tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	return row, checkCall(ctx, r.Reader, key, row)
}

// PlanToRun implements [Reader].
func (r *authorisedReader) PlanToRun(ctx context.Context, tenant, id string) (*PlanRow, error) {
	key, err := r.key(ctx)
	if err != nil {
		return nil, err
	}
	if err := CheckAuthority(ctx, r.Reader, key, "kv"); err != nil {
		return nil, err
	}
	row, err := r.Reader.PlanToRun(ctx, tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	return row, checkPlan(ctx, r.Reader, key, row)
}

// User implements [Reader].
func (r *authorisedReader) User(ctx context.Context, id string) (*UserRow, error) {
	return read(ctx, r, "users", func() (*UserRow, error) { return r.Reader.User(ctx, id) })
}

// Users implements [Reader].
func (r *authorisedReader) Users(ctx context.Context, tenant string) ([]UserRow, error) {
	return read(ctx, r, "users", func() ([]UserRow, error) { return r.Reader.Users(ctx, tenant) })
}

// BrowserSession implements [Reader].
func (r *authorisedReader) BrowserSession(ctx context.Context, hash string) (*BrowserSessionRow, error) {
	return read(ctx, r, "browser_sessions", func() (*BrowserSessionRow, error) { return r.Reader.BrowserSession(ctx, hash) })
}

// BrowserSessions implements [Reader].
func (r *authorisedReader) BrowserSessions(ctx context.Context, tenant string) ([]BrowserSessionRow, error) {
	return read(ctx, r, "browser_sessions", func() ([]BrowserSessionRow, error) { return r.Reader.BrowserSessions(ctx, tenant) })
}
