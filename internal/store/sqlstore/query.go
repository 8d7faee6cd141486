package sqlstore

import (
	"slices"
	"strings"
	"time"
)

// The columns of tables, in the order in which they are scanned.
const (
	entryColumns  = `chain, seq, at, tenant, kind, subject, principal, body, prev, hash`
	pluginColumns = `name, version, package_digest, path, manifest, state, approved_by, dev, registered_at`
)

// The same bytes again lengthen their life and bring erased ones back; what
// changes nothing writes nothing.
const putSealedBody = `INSERT INTO bodies (tenant, hash, data, expires_at) VALUES (?, ?, ?, ?)
	ON CONFLICT (tenant, hash) DO UPDATE SET data = excluded.data,
		expires_at = CASE WHEN excluded.expires_at = 0 OR bodies.expires_at = 0 THEN 0
			WHEN excluded.expires_at > bodies.expires_at THEN excluded.expires_at ELSE bodies.expires_at END`

const putBody = `INSERT INTO bodies (tenant, hash, data, expires_at) VALUES (?, ?, ?, ?)
	ON CONFLICT (tenant, hash) DO UPDATE SET data = excluded.data,
		expires_at = CASE WHEN excluded.expires_at = 0 OR excluded.expires_at > bodies.expires_at THEN excluded.expires_at ELSE bodies.expires_at END
	WHERE bodies.data IS NULL OR (bodies.expires_at <> 0 AND (excluded.expires_at = 0 OR excluded.expires_at > bodies.expires_at))`

const nameBody = `INSERT INTO entry_bodies (tenant, hash, subject, principal, expires_at) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (tenant, hash, subject, principal) DO UPDATE SET
		expires_at = CASE WHEN excluded.expires_at = 0 OR entry_bodies.expires_at = 0 THEN 0
			WHEN excluded.expires_at > entry_bodies.expires_at THEN excluded.expires_at ELSE entry_bodies.expires_at END`

const putPackage = `INSERT INTO packages (digest, source, signer) VALUES (?, ?, ?)
	ON CONFLICT (digest) DO UPDATE SET source = excluded.source, signer = excluded.signer`

const putPlugin = `INSERT INTO plugins (` + pluginColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (name, version) DO UPDATE SET package_digest = excluded.package_digest, path = excluded.path, manifest = excluded.manifest,
		state = excluded.state, approved_by = excluded.approved_by, dev = excluded.dev, registered_at = excluded.registered_at`

const selectHead = `SELECT node, seq, head, mac, authority FROM chains WHERE id = ?`

const putHead = `INSERT INTO chains (id, node, seq, head, mac, authority) VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT (id) DO UPDATE SET node = excluded.node, seq = excluded.seq, head = excluded.head, mac = excluded.mac,
		authority = excluded.authority`

// A query is a SELECT that grows by its conditions.
type query struct {
	text     strings.Builder
	args     []any
	narrowed bool // it has a condition
}

func selectFrom(columns, table string) *query {
	q := &query{}
	q.text.WriteString("SELECT " + columns + " FROM " + table)
	return q
}

// where adds a condition with as many arguments as it has question marks.
func (q *query) where(condition string, args ...any) {
	if q.narrowed {
		q.text.WriteString(" AND ")
	} else {
		q.text.WriteString(" WHERE ")
	}
	q.narrowed = true
	q.text.WriteString(condition)
	q.args = append(q.args, args...)
}

// equal adds the condition that a column has a value, if one is asked for.
func (q *query) equal(column, value string) {
	if value != "" {
		q.where(column+" = ?", value)
	}
}

// state adds the condition that a row is in a state, if one is asked for. Those
// with an index of their own become part of the text: where a parameter stands
// in its place, SQLite does not see that the index will do.
func (q *query) state(value string, indexed ...string) {
	if slices.Contains(indexed, value) {
		q.where("state = '" + value + "'")
		return
	}
	q.equal("state", value)
}

// page asks for the newest that are older than before: ids begin with their
// time.
func (q *query) page(before string, limit int) {
	if before != "" {
		q.where("id < ?", before)
	}
	q.orderBy("id DESC")
	q.limit(limit)
}

func (q *query) orderBy(order string) { q.text.WriteString(" ORDER BY " + order) }

func (q *query) limit(n int) {
	if n > 0 {
		q.text.WriteString(" LIMIT ?")
		q.args = append(q.args, n)
	}
}

// entryTime is how entries keep a time: every one has one, and it is hashed as
// it is stored.
func entryTime(n int64) time.Time { return time.UnixMicro(n).UTC() }
