package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// authorityRows say what is signed of each of [store.AuthorityTables]: what says
// who may do what, and not what merely happened. Of approvals those count that may
// still have an effect.
//
// joined is the column of a whole number that the last column is hashed with. That one came
// when rows were signed already: where it is empty, a row has the hash that it had before.
var authorityRows = map[string]struct {
	columns, where, order string
	joined                int
}{
	"agents":      {columns: `tenant, id, created_by, created_at, brain, tier, prompt, settings, state`, order: "tenant, id"},
	"approvals":   {columns: approvalColumns, where: "state IN ('open', 'approved')", order: "tenant, id"},
	"assignments": {columns: assignmentColumns, order: "tenant, subject, plugin"},
	"identities":  {columns: identityColumns, order: "tenant, provider, external_id", joined: 7},
	"kv":          {columns: `tenant, owner, scope, namespace, key, value`, where: "owner = ':host' AND scope = 'site'", order: "tenant, namespace, key"},
	"plugins":     {columns: pluginColumns, order: "name, version"},
	"policies":    {columns: policyColumns, order: "tenant, name"},
	"schedules": {columns: `tenant, id, owner_type, owner_id, scopes, operation, spec, zone, misfire, catch_up, overlap, overlay, input, state,
		asker`, order: "tenant, id"},
	"browser_sessions": {columns: browserColumns, order: "id", joined: 7},
	"tenant_plugins":   {columns: tenantPluginColumns, order: "tenant, name, version"},
	"tenants":          {columns: `name, created_by, created_at, disabled_at`, order: "name"},
	"tokens":           {columns: tokenColumns, order: "id"},
	"users":            {columns: userColumns, order: "id", joined: 9},
}

// AuthorityHash implements [store.Reader].
func (r *reader) AuthorityHash(ctx context.Context, table string) (string, error) {
	of, known := authorityRows[table]
	if !known {
		return "", fmt.Errorf("the rows of %s are not signed", table)
	}
	if err := r.own.check(ctx, r); err != nil {
		return "", err
	}
	q := selectFrom(of.columns, table)
	if of.where != "" {
		q.where(of.where)
	}
	q.orderBy(of.order)
	n := strings.Count(of.columns, ",") + 1
	values, dest := make([]sql.RawBytes, n), make([]any, n)
	for i := range values {
		dest[i] = &values[i]
	}
	sum, row := store.NewAuthorityHash(table), make([][]byte, n)
	for _, err := range rows(store.Everywhere(ctx), r, q, func(rows *record, _ *struct{}) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		for i, value := range values {
			row[i] = value
		}
		if last := len(row) - 1; of.joined == 0 {
			sum.Row(row)
		} else {
			if len(row[last]) > 0 { // no whole number has a line break
				row[of.joined] = slices.Concat(row[of.joined], []byte("\n"), row[last])
			}
			sum.Row(row[:last])
		}
		return nil
	}) {
		if err != nil {
			return "", err
		}
	}
	return sum.Sum(), nil
}

// written returns the table that a statement writes to, where its rows are signed.
func written(query string) string {
	for _, begin := range [...]string{"INSERT INTO ", "UPDATE ", "DELETE FROM "} {
		if rest, found := strings.CutPrefix(query, begin); found {
			table, _, _ := strings.Cut(rest, " ")
			if _, signed := authorityRows[table]; signed && table != "kv" { // see ofHost
				return table
			}
		}
	}
	return ""
}

// touch is called before the first change of a table in a transaction: what is
// changed from here on was what the ledger signed, or the change would sign what
// another wrote.
func (t *tx) touch(table string) error {
	if t.touched[table] {
		return nil
	}
	if err := t.orderAuthority(); err != nil {
		return err
	}
	signed, heads, err := t.signedAuthority()
	if err != nil {
		return err
	}
	if signed != nil || heads == 0 {
		sum, err := t.AuthorityHash(context.Background(), table)
		if err != nil {
			return err
		}
		if err := signed.Holds(table, sum); err != nil {
			return err
		}
	}
	if t.touched == nil {
		t.touched = map[string]bool{}
	}
	t.touched[table] = true
	return nil
}

// orderAuthority puts the transactions that change such rows one after the other,
// where several may go on at a time.
func (t *tx) orderAuthority() error {
	s := t.writer.engine.Server
	if s == nil || t.ordered {
		return nil
	}
	t.ordered = true
	_, err := t.Exec(s.Order)
	return err
}

// signedAuthority returns what the heads sign, nil where they sign nothing, and how
// many heads there are.
func (t *tx) signedAuthority() (*store.Authority, int, error) {
	heads, err := t.Chains(context.Background())
	if err != nil || len(heads) == 0 {
		return nil, 0, err
	}
	key, err := t.signer()
	if err != nil {
		return nil, 0, err
	}
	signed, err := store.AuthorityAt(key, heads)
	return signed, len(heads), err
}

// SignAuthority implements [store.Tx].
func (t *tx) SignAuthority() error { t.signing = true; return nil }

// authority returns what the next head is to sign, where the last one of its chain
// signed that. A change that comes without an entry, and the first signature of a
// ledger of an earlier release, get one here.
func (t *tx) authority(last string) (string, error) {
	own, err := store.ParseAuthority(last)
	if err != nil {
		return "", err
	}
	if own.Complete() && len(t.touched) == 0 { // what others changed since stands in their heads
		if len(t.delta) == 0 {
			return last, nil
		}
		if err := t.live(own, own); err != nil {
			return "", err
		}
		return own.String(), t.noteIfNone(own)
	}
	if err := t.orderAuthority(); err != nil {
		return "", err
	}
	signed, heads, err := t.signedAuthority()
	if err != nil {
		return "", err
	}
	key, err := t.signer()
	if err != nil {
		return "", err
	}
	unsigned, err := store.Unsigned(context.Background(), &t.reader, key)
	if err != nil {
		return "", err
	}
	next := &store.Authority{N: 1, Tables: map[string]string{}, Rows: store.SignedRows}
	if signed != nil {
		next.N = signed.N
		for table, sum := range signed.Tables {
			next.Tables[table] = sum
		}
	}
	if unsigned {
		err = t.signEarlier(next, own, signed != nil)
	} else {
		err = t.live(next, own)
	}
	if err != nil {
		return "", err
	}
	changed := signed == nil || unsigned
	for _, table := range store.AuthorityTables {
		if _, known := next.Tables[table]; known && !t.touched[table] {
			continue
		}
		sum, err := t.AuthorityHash(context.Background(), table)
		if err != nil {
			return "", err
		}
		if heads == 0 && !t.touched[table] { // there never was a ledger that could have told of rows
			if err := (*store.Authority)(nil).Holds(table, sum); err != nil {
				return "", err
			}
		}
		changed = changed || next.Tables[table] != sum
		next.Tables[table] = sum
	}
	if !changed && len(t.delta) == 0 {
		return next.String(), nil
	}
	if changed && signed != nil {
		next.N++
	}
	if unsigned {
		return next.String(), t.noteAuthority(plugin.EntryAuthoritySigned, next)
	}
	return next.String(), t.noteIfNone(next)
}

// noteIfNone appends an entry to a transaction that has none, where it has to have one.
func (t *tx) noteIfNone(next *store.Authority) error {
	if len(t.entries) > 0 || len(t.touched) == 0 && len(t.delta) == 0 {
		return nil
	}
	return t.noteAuthority(plugin.EntryAuthorityChanged, next)
}

// noteAuthority appends the entry of a change that has none.
func (t *tx) noteAuthority(kind plugin.EntryKind, a *store.Authority) error {
	body, err := json.Marshal(map[string]any{"n": a.N, "tables": a.Tables})
	if err != nil {
		return err
	}
	t.Append(plugin.Entry{At: time.Now().UTC(), Kind: kind, Subject: "authority", Body: body})
	return t.err
}

const policyColumns = `tenant, name, text, put_by, put_at`

const putPolicy = `INSERT INTO policies (` + policyColumns + `) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (tenant, name) DO UPDATE SET text = excluded.text, put_by = excluded.put_by, put_at = excluded.put_at`

// Policies implements [store.Reader].
func (r *reader) Policies(ctx context.Context, tenant string) ([]store.PolicyRow, error) {
	q := selectFrom(policyColumns, "policies")
	q.where("tenant = ?", tenant)
	q.orderBy("name")
	return all(rows(ctx, r, q, func(rows *record, p *store.PolicyRow) error {
		var at int64
		err := rows.Scan(&p.Tenant, &p.Name, &p.Text, &p.By, &at)
		p.At = fromMicros(at)
		return err
	}))
}

// PutPolicy implements [store.Tx].
func (t *tx) PutPolicy(r store.PolicyRow) error {
	_, err := t.Exec(putPolicy, r.Tenant, r.Name, r.Text, r.By, micros(r.At))
	return err
}

// DeletePolicy implements [store.Tx].
func (t *tx) DeletePolicy(tenant, name string) (bool, error) {
	return t.Exec(`DELETE FROM policies WHERE tenant = ? AND name = ?`, tenant, name)
}
