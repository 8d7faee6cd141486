package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
)

// A column is one of a table, as the schema declares it.
type column struct {
	name, declared string
	required, key  bool // it takes no NULL; it is of the primary key
}

// CheckClasses implements [store.Reader].
func (r *reader) CheckClasses(ctx context.Context) error {
	if !r.typed {
		return nil
	}
	for _, table := range r.own.tables() {
		if err := r.checkClasses(ctx, table); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) checkClasses(ctx context.Context, table string) error {
	q := selectFrom(`name, type, "notnull" <> 0 OR pk > 0, pk > 0`, "pragma_table_info('"+table+"')")
	columns, err := all(rows(ctx, r, q, func(rows *record, c *column) error { return rows.Scan(&c.name, &c.declared, &c.required, &c.key) }))
	if err != nil {
		return err
	}
	if len(columns) == 0 || slices.ContainsFunc(columns, func(c column) bool { return strings.ContainsAny(c.name+c.declared, `'"`) }) {
		return nil // the schema was changed, and what checks it says how
	}
	var which, have, want, wrong, keys strings.Builder
	for _, c := range columns {
		classes := "'" + strings.ToLower(c.declared) + "'"
		if !c.required {
			classes += ", 'null'"
		}
		name := `"` + c.name + `"`
		is := fmt.Sprintf("typeof(%s) NOT IN (%s)", name, classes)
		fmt.Fprintf(&which, " WHEN %s THEN '%s'", is, c.name)
		fmt.Fprintf(&have, " WHEN %s THEN upper(typeof(%s))", is, name)
		fmt.Fprintf(&want, " WHEN %s THEN '%s'", is, c.declared)
		wrong.WriteString(" OR " + is)
		if c.key {
			fmt.Fprintf(&keys, " || ', %s ' || quote(CAST(%s AS TEXT))", c.name, name)
		}
	}
	q = selectFrom(fmt.Sprintf("CASE%s END, CASE%s END, CASE%s END, substr(''%s, 3)", &which, &have, &want, &keys), table)
	q.where(strings.TrimPrefix(wrong.String(), " OR "))
	q.limit(1)
	found, err := one(rows(ctx, r, q, func(rows *record, e *store.ClassError) error {
		e.Table = table
		return rows.Scan(&e.Column, &e.Have, &e.Want, &e.Row)
	}))
	if err == nil && found != nil {
		return found
	}
	return err
}

// tables returns the names of the tables whose statements are known, but for those of
// the programs that keep them, which read them by themselves.
func (o *Ownership) tables() (names []string) {
	for line := range strings.Lines(o.Known) {
		name, is := strings.CutPrefix(object(line), "table ")
		if is && name != "goose_db_version" && name != "kb_index" {
			names = append(names, name)
		}
	}
	return names
}

// A classError is a value of a class that its column does not declare.
type classError = store.ClassError
