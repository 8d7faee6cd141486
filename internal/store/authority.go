package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/store/chain"
)

// AuthorityTables are the tables whose rows decide who may do what. The head of a
// chain signs a hash of each, so that no row of them can be changed, added, taken
// away or put back to what it was by who has the database and not the key.
//
// Of kv it is what the host keeps of itself: that it is in recovery.
var AuthorityTables = []string{"agents", "approvals", "assignments", "browser_sessions", "identities", "kv", "plugins", "policies", "schedules", "tenant_plugins", "tenants", "tokens", "users"}

// noneBefore are the tables that joined when heads signed the others already: a head that
// does not name one of them signs that it has no rows.
var noneBefore = []string{"browser_sessions", "tenant_plugins", "tenants", "tokens", "users"}

// An Authority is what a head signs of them: the hash of the rows of each table as
// the Nth change left them. The head with the largest N says what holds now.
//
// Live is for its own chain alone: the part of [LiveTables] that the chain brought.
type Authority struct {
	N      int64
	Tables map[string]string // hashes by table
	Rows   int               // which rows bear a MAC each, up to [SignedRows]
	Live   map[string]string // weights by table, hidden
}

// String returns the form in which a head has it.
func (a *Authority) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatInt(a.N, 10))
	for _, table := range slices.Sorted(maps.Keys(a.Tables)) {
		b.WriteString(" " + table + "=" + a.Tables[table])
	}
	if a.Rows > 0 {
		b.WriteString(" " + rowsMark + "=" + strconv.Itoa(a.Rows))
	}
	for _, table := range slices.Sorted(maps.Keys(a.Live)) {
		b.WriteString(" +" + table + "=" + a.Live[table])
	}
	return b.String()
}

// SignedRows is 1 where messages, knowledge bases, stored values and memories bear a
// MAC each, 2 where conversations and the steps of plans do too. A head says so, so that
// the rows of a release before that are signed once.
const SignedRows = 2

// SignedSince returns since which of [SignedRows] the rows of a table bear a MAC each.
func SignedSince(table string) int {
	if table == "conversations" || table == "steps" {
		return 2
	}
	return 1
}

const rowsMark = "rows" // no table has that name

// Complete reports whether a head signs all that this release signs.
func (a *Authority) Complete() bool { return a.Living() && a.Rows >= SignedRows }

// Living reports whether a head signs what is still to run, and with it what has
// ended, sessions and artifacts.
func (a *Authority) Living() bool {
	if a == nil || len(a.Live) < len(LiveTables) {
		return false
	}
	return !slices.ContainsFunc(AuthorityTables, func(table string) bool { return a.Tables[table] == "" && !slices.Contains(noneBefore, table) })
}

// ParseAuthority reads what a head says; nil where that is nothing.
func ParseAuthority(text string) (*Authority, error) {
	if text == "" {
		return nil, nil
	}
	first, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("what a head says of the rows that decide authority cannot be read: %w", err)
	}
	a := &Authority{N: n, Tables: map[string]string{}, Live: map[string]string{}}
	for _, part := range strings.Fields(rest) {
		table, sum, _ := strings.Cut(part, "=")
		if live, is := strings.CutPrefix(table, "+"); is {
			a.Live[live] = sum
		} else if table == rowsMark {
			if a.Rows, err = strconv.Atoi(sum); err != nil {
				return nil, fmt.Errorf("what a head says of the rows that are signed cannot be read: %w", err)
			}
		} else {
			a.Tables[table] = sum
		}
	}
	return a, nil
}

// AuthorityAt returns what the heads of all chains say, nil where they are of an
// earlier release, or where there is none. A head that the key has not signed is
// [ErrTampered]; without a key heads are believed.
func AuthorityAt(k *Key, heads []ChainRow) (newest *Authority, err error) {
	for _, head := range heads {
		if k != nil && !k.Signed(head) {
			return nil, unsignedHead(head)
		}
		a, err := ParseAuthority(head.Authority)
		if err != nil {
			return nil, err
		}
		if a != nil && (newest == nil || a.N > newest.N) {
			newest = a
		}
	}
	return newest, nil
}

func unsignedHead(head ChainRow) error {
	return fmt.Errorf("%w: the head of chain %d at entry %d does not bear this host's signature", ErrTampered, head.ID, head.Seq)
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
	signed, err := AuthorityAt(key, heads)
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
		if signed, known := a.Tables[table]; known {
			want = signed
		} else if !slices.Contains(noneBefore, table) {
			return nil // a table that joined with a later release, and was not signed yet
		}
	}
	if sum == want || table == "kv" && want == NewAuthorityHash(table).Sum() {
		return nil // a copy says that it is one before any host has signed that, and then less runs
	}
	return &AuthorityError{table}
}

// SignClosed returns the MAC of an approval that takes no answer any more.
func SignClosed(key *Key, row ApprovalRow) string {
	row.MAC = ""
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // it is text and times
	}
	return key.SignClosed(string(text))
}

// CheckClosed refuses approvals that say that they were answered, used or closed and
// bear no signature of it: no one did, or it was said of something else.
func CheckClosed(key *Key, rows ...ApprovalRow) error {
	for _, row := range rows {
		if row.State.Closed() && !chain.Holds(row.MAC, SignClosed(key, row)) {
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

// Unsigned reports whether a ledger is of a release that did not sign all that this
// one signs. Where there is a key, a head that it has not signed is [ErrTampered]: it
// cannot say that it is of an earlier release.
func Unsigned(ctx context.Context, r Reader, key *Key) (bool, error) {
	return noHead(ctx, r, key, (*Authority).Complete)
}

// UnsignedRows returns what reports whether a ledger is of a release that did not sign
// the rows of a table.
func UnsignedRows(table string) func(context.Context, Reader, *Key) (bool, error) {
	return func(ctx context.Context, r Reader, key *Key) (bool, error) {
		return noHead(ctx, r, key, func(a *Authority) bool { return a.Living() && a.Rows >= SignedSince(table) })
	}
}

// UnsignedLife reports whether a ledger is of a release that signed neither what is
// still to run, nor sessions and artifacts.
func UnsignedLife(ctx context.Context, r Reader, key *Key) (bool, error) {
	return noHead(ctx, r, key, (*Authority).Living)
}

func noHead(ctx context.Context, r Reader, key *Key, says func(*Authority) bool) (bool, error) {
	heads, err := r.Chains(ctx)
	if err != nil || len(heads) == 0 {
		return false, err
	}
	for _, head := range heads {
		if key != nil && !key.Signed(head) {
			return false, unsignedHead(head)
		}
		a, err := ParseAuthority(head.Authority)
		if err != nil {
			return false, err
		}
		if says(a) {
			return false, nil
		}
	}
	return true, nil
}

// An AuthorityReader reads what heads sign.
type AuthorityReader interface {
	KeptReader
	ClassReader

	// AuthorityHash returns the hash of the rows of one of [AuthorityTables].
	AuthorityHash(ctx context.Context, table string) (string, error)
	// LiveDigests yields what was kept as the digest of each row of one of
	// [LiveTables] that has not ended.
	LiveDigests(ctx context.Context, table string) iter.Seq2[string, error]
	// LiveCalls yields the calls that have not ended, of all tenants.
	LiveCalls(ctx context.Context) iter.Seq2[CallRow, error]
	// LivePlans yields the plans that have not ended, of all tenants.
	LivePlans(ctx context.Context) iter.Seq2[PlanRow, error]
	// HiddenLive returns how many of these rows of a table are not found by their id, or
	// not by their key. An index whose bytes were edited hides a row that is there, and
	// its key would be free.
	HiddenLive(ctx context.Context, table string) (int64, error)
}

// An AuthorityWriter signs it.
type AuthorityWriter interface {
	// SignAuthority signs the rows that decide authority in a ledger of an earlier
	// release, with an entry that says so. Where they are signed it does nothing.
	SignAuthority() error
}
