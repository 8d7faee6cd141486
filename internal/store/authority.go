package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// AuthorityTables are the tables whose rows decide who may do what. The head of a
// chain signs a hash of each, so that no row of them can be changed, added, taken
// away or put back to what it was by who has the database and not the key.
var AuthorityTables = []string{"agents", "approvals", "assignments", "identities", "plugins", "policies", "schedules"}

// An Authority is what a head signs of them: the hash of the rows of each table as
// the Nth change left them. The head with the largest N says what holds now.
type Authority struct {
	N      int64
	Tables map[string]string // hashes by table
}

// String returns the form in which a head has it.
func (a *Authority) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatInt(a.N, 10))
	for _, table := range slices.Sorted(maps.Keys(a.Tables)) {
		b.WriteString(" " + table + "=" + a.Tables[table])
	}
	return b.String()
}

func parseAuthority(text string) (*Authority, error) {
	first, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("what a head says of the rows that decide authority cannot be read: %w", err)
	}
	a := &Authority{N: n, Tables: map[string]string{}}
	for _, part := range strings.Fields(rest) {
		table, sum, _ := strings.Cut(part, "=")
		a.Tables[table] = sum
	}
	return a, nil
}

// AuthorityAt returns what the heads of all chains say, nil where they are of an
// earlier release, or where there is none. A head that the key has not signed is
// [ErrTampered]; without a key heads are believed.
func (k *Key) AuthorityAt(heads []ChainRow) (newest *Authority, err error) {
	for _, head := range heads {
		if k != nil && !k.Signed(head) {
			return nil, fmt.Errorf("%w: the head of chain %d at entry %d does not bear this host's signature", ErrTampered, head.ID, head.Seq)
		}
		if head.Authority == "" {
			continue
		}
		a, err := parseAuthority(head.Authority)
		if err != nil {
			return nil, err
		}
		if newest == nil || a.N > newest.N {
			newest = a
		}
	}
	return newest, nil
}

// An AuthorityError says that the rows of a table are not those that the ledger's
// head signs.
type AuthorityError struct{ Table string }

// Error says what to do as well.
func (e *AuthorityError) Error() string {
	return fmt.Sprintf("the rows of %s in the database are not those that the ledger signed: a row was changed, added, removed or put back from outside; "+
		"nothing that rests on them is used until that is undone, or a backup is restored", e.Table)
}

// Unwrap makes it one of the ways of tampering.
func (*AuthorityError) Unwrap() error { return ErrTampered }

// CheckAuthority holds the rows of tables, all where none is named, against what
// the heads sign. r is of one moment. key is nil where heads are believed.
//
// A database that an earlier release wrote has signed nothing yet; see
// [Tx.SignAuthority].
func CheckAuthority(ctx context.Context, r Reader, key *Key, tables ...string) error {
	if len(tables) == 0 {
		tables = AuthorityTables
	}
	heads, err := r.Chains(ctx)
	if err != nil {
		return err
	}
	signed, err := key.AuthorityAt(heads)
	if err != nil || signed == nil && len(heads) > 0 {
		return err
	}
	for _, table := range tables {
		sum, err := r.AuthorityHash(ctx, table)
		if err != nil {
			return err
		}
		if err := signed.Holds(table, sum); err != nil {
			return err
		}
	}
	return nil
}

// Holds returns nil where the rows of a table have the hash that was signed. Where
// there is no ledger there are no rows.
func (a *Authority) Holds(table, sum string) error {
	want := NewAuthorityHash(table).Sum()
	if a != nil {
		var known bool
		if want, known = a.Tables[table]; !known {
			return nil // a table that joined with a later release, and was not signed yet
		}
	}
	if sum != want {
		return &AuthorityError{table}
	}
	return nil
}

// SignUsed returns the MAC of an approval that was used.
func (k *Key) SignUsed(row ApprovalRow) string {
	row.MAC = ""
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // it is text and times
	}
	return k.mac(usedDomain, 0, 0, string(text))
}

// CheckUsed refuses approvals that say that they were used and bear no signature of
// it: no one gave them, or they were given for something else.
func (k *Key) CheckUsed(rows ...ApprovalRow) error {
	for _, row := range rows {
		if row.State == ApprovalConsumed && !hmac.Equal([]byte(row.MAC), []byte(k.SignUsed(row))) {
			return &AuthorityError{"approvals"}
		}
	}
	return nil
}

// An AuthorityHash hashes the rows of a table in the order of their keys.
type AuthorityHash struct{ h hash.Hash }

// NewAuthorityHash returns the hash of no rows.
func NewAuthorityHash(table string) AuthorityHash {
	h := sha256.New()
	fmt.Fprintf(h, "mortise authority 1\n%s\n", table)
	return AuthorityHash{h}
}

// Row adds a row. Each value goes after its length.
func (h AuthorityHash) Row(values [][]byte) {
	size := make([]byte, 8)
	for _, value := range values {
		binary.BigEndian.PutUint64(size, uint64(len(value)))
		h.h.Write(size)
		h.h.Write(value)
	}
}

// Sum returns the hash in hexadecimal.
func (h AuthorityHash) Sum() string { return hex.EncodeToString(h.h.Sum(nil)) }

// Unsigned reports whether a ledger is of a release that signed no rows.
func Unsigned(ctx context.Context, r Reader) (bool, error) {
	heads, err := r.Chains(ctx)
	if err != nil || len(heads) == 0 {
		return false, err
	}
	return !slices.ContainsFunc(heads, func(h ChainRow) bool { return h.Authority != "" }), nil
}

// Authorised returns a store whose rows that decide authority are held against the
// ledger each time they are read. dir has the key.
func Authorised(st Store, dir string) Store { return &authorised{st, dir} }

type authorised struct {
	Store
	dir string
}

// Held says what a store with a lease says of it.
func (s *authorised) Held() error {
	if st, leased := s.Store.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}

// Snapshot implements [Store].
func (s *authorised) Snapshot(ctx context.Context, fn func(Reader) error) error {
	return s.Store.Snapshot(ctx, func(r Reader) error { return fn(&authorisedReader{r, s.dir}) })
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

// An authorisedReader is of one moment: it checks a table before it reads of it.
type authorisedReader struct {
	Reader
	dir string
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

// used checks approvals that say that they were used.
func (r *authorisedReader) used(ctx context.Context, rows ...ApprovalRow) error {
	if !slices.ContainsFunc(rows, func(row ApprovalRow) bool { return row.State == ApprovalConsumed }) {
		return nil
	}
	key, err := r.key(ctx)
	if err != nil {
		return err
	}
	if none, err := Unsigned(ctx, r.Reader); err != nil || none || key == nil {
		return err
	}
	return key.CheckUsed(rows...)
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
	return read(ctx, r, "approvals", func() (*ApprovalRow, error) {
		row, err := r.Reader.Approval(ctx, tenant, id)
		if err != nil || row == nil {
			return nil, err
		}
		return row, r.used(ctx, *row)
	})
}

// ApprovalByToken implements [Reader].
func (r *authorisedReader) ApprovalByToken(ctx context.Context, tenant, tokenHash string) (*ApprovalRow, error) {
	return read(ctx, r, "approvals", func() (*ApprovalRow, error) {
		row, err := r.Reader.ApprovalByToken(ctx, tenant, tokenHash)
		if err != nil || row == nil {
			return nil, err
		}
		return row, r.used(ctx, *row)
	})
}

// Approvals implements [Reader].
func (r *authorisedReader) Approvals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error) {
	return read(ctx, r, "approvals", func() ([]ApprovalRow, error) {
		rows, err := r.Reader.Approvals(ctx, f)
		if err != nil {
			return nil, err
		}
		return rows, r.used(ctx, rows...)
	})
}
