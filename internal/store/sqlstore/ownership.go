package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/store/chain"
)

// An Ownership tells a schema that is Mortise's own from one that was changed from
// outside: what a trigger writes in the middle of a transaction would be signed with
// the rest, and a column that compares without letter case makes another principal of
// one whose row is signed.
type Ownership struct {
	Triggers string // what selects the names of triggers, in a column name

	// Objects and Version are for an engine that keeps the statements of its schema.
	// Objects selects type, name and sql of each object; Version selects a number that
	// changes with the schema, in a column of that name. Known are the objects that
	// there should be, as [Objects] returns them; none are known without it.
	Objects, Version string
	Known            string

	checked atomic.Int64 // the version that was found to be right, and 1
}

// check refuses a schema with what is none of Mortise's.
func (o *Ownership) check(ctx context.Context, r *reader) error {
	if o.Known == "" {
		return o.untriggered(ctx, r)
	}
	version, err := one(rows(ctx, r, selectFrom("schema_version", o.Version), func(rows *record, n *int64) error { return rows.Scan(n) }))
	if err != nil {
		return err
	}
	if version != nil && o.checked.Load() == *version+1 {
		return nil
	}
	have, err := o.objects(ctx, r)
	if err != nil {
		return err
	}
	if err := compareObjects(have, o.Known); err != nil {
		return err
	}
	if version != nil {
		o.checked.Store(*version + 1)
	}
	return nil
}

// untriggered refuses a database with triggers, of which Mortise has none.
func (o *Ownership) untriggered(ctx context.Context, r *reader) error {
	for name, err := range rows(ctx, r, selectFrom("name", o.Triggers), func(rows *record, name *string) error { return rows.Scan(name) }) {
		if err != nil {
			return err
		}
		return foreign("has the trigger %.100q, which is none of Mortise's; drop it", name)
	}
	return nil
}

// objects returns a line for each object of the schema: its type, its name and a hash
// of the statement that makes it.
func (o *Ownership) objects(ctx context.Context, r *reader) (string, error) {
	var all strings.Builder
	type row struct{ kind, name, sql string }
	q := selectFrom("type, name, sql", o.Objects)
	q.orderBy("type, name")
	for got, err := range rows(ctx, r, q, func(rows *record, o *row) error { return rows.Scan(&o.kind, &o.name, &o.sql) }) {
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256([]byte(got.sql))
		fmt.Fprintf(&all, "%s %s %s\n", got.kind, got.name, hex.EncodeToString(sum[:16]))
	}
	return all.String(), nil
}

// Objects returns what [Ownership.Known] should be for the schema of this store.
func (s *Store) Objects(ctx context.Context) (string, error) { return s.own.objects(ctx, &s.reader) }

// compareObjects names the first object that differs. A table or view of another name
// changes nothing of Mortise's own; an index or a trigger may.
func compareObjects(have, known string) error {
	if have == known {
		return nil
	}
	missing := map[string]string{} // what is not as it should be, by type and name
	for line := range strings.Lines(known) {
		missing[object(line)] = line
	}
	for line := range strings.Lines(have) {
		which := object(line)
		switch expected, own := missing[which]; {
		case own && line == expected:
			delete(missing, which)
		case !own && !strings.HasPrefix(which, "table ") && !strings.HasPrefix(which, "view "):
			return foreign("has the %.100s, which is none of Mortise's; drop it", which)
		}
	}
	for _, which := range slices.Sorted(maps.Keys(missing)) {
		return foreign("has not the %.100s as Mortise makes it; undo what was changed", which)
	}
	return nil
}

// object returns the type and the name in a line of [Ownership.objects].
func object(line string) string { return line[:max(strings.LastIndexByte(line, ' '), 0)] }

func foreign(format string, args ...any) error {
	return fmt.Errorf("%w: the database %s, and see with 'mortise ledger verify' what it did", chain.ErrTampered, fmt.Sprintf(format, args...))
}
