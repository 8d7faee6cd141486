package postgres_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// tenantTables returns all tables with a column for the tenant, as the catalogue has them,
// with the columns of each.
func tenantTables(t *testing.T, conn *pgx.Conn) map[string][]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c
		WHERE c.table_schema = current_schema() AND c.is_generated = 'NEVER' AND EXISTS (SELECT 1 FROM information_schema.columns o
			WHERE o.table_schema = c.table_schema AND o.table_name = c.table_name AND o.column_name = 'tenant')
		ORDER BY c.table_name, c.ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for rows.Next() {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			t.Fatal(err)
		}
		found[table] = append(found[table], column+" "+kind)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// row returns an INSERT of a row of a tenant.
func row(table string, columns []string, tenant string) string {
	var names, values []string
	for _, column := range columns {
		name, kind, _ := strings.Cut(column, " ")
		value := "'" + tenant + "'"
		switch {
		case name == "tenant":
		case kind == "bigint" || kind == "integer":
			value = fmt.Sprint(len(tenant))
		case kind == "bytea":
			value = `'\x00'`
		case kind == "double precision" || kind == "real":
			value = "0"
		case kind == "tsvector":
			value = "''"
		}
		names, values = append(names, `"`+name+`"`), append(values, value)
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "), strings.Join(values, ", "))
}

// Behind the statements of the store: with the setting of one tenant, no row of another is
// read, changed, deleted, added or moved, in any table that has a column for the tenant. With
// none there are no rows. The tables are those of the catalogue, so that one without a policy
// fails.
func TestTheDatabaseKeepsTenantsApart(t *testing.T) {
	url := pgtest.Open(t)
	st, err := postgres.Open(t.Context(), url, postgres.Options{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url) // as the host itself does
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	be := func(tenant string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "SELECT set_config('mortise.tenant', $1, false)", tenant); err != nil {
			t.Fatal(err)
		}
	}
	count := func(table, where string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE "+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tables := tenantTables(t, conn)
	if len(tables) < 25 || !slices.Contains(tables["calls"], "tenant text") {
		t.Fatalf("the catalogue has %d tables with a column for the tenant", len(tables))
	}
	for table, columns := range tables {
		be("*")
		for _, tenant := range []string{"a", "bb"} {
			if _, err := conn.Exec(t.Context(), row(table, columns, tenant)); err != nil {
				t.Fatalf("%s: %v", table, err)
			}
		}
		if count(table, "true") != 2 {
			t.Errorf("%s: the site does not see both rows", table)
		}
		be("a")
		if n, others := count(table, "true"), count(table, "tenant = 'bb'"); n != 1 || others != 0 {
			t.Errorf("%s: a tenant sees %d rows, and %d of another", table, n, others)
		}
		for what, statement := range map[string]string{
			"changed": `UPDATE ` + table + ` SET tenant = tenant WHERE tenant = 'bb'`,
			"deleted": `DELETE FROM ` + table + ` WHERE tenant = 'bb'`,
			"taken":   `UPDATE ` + table + ` SET tenant = 'a' WHERE tenant = 'bb'`,
			"added":   row(table, columns, "ccc"),
			"moved":   `UPDATE ` + table + ` SET tenant = 'bb'`,
		} {
			if tag, err := conn.Exec(t.Context(), statement); err == nil && tag.RowsAffected() > 0 {
				t.Errorf("%s: %d rows were %s by another tenant", table, tag.RowsAffected(), what)
			}
		}
		for _, none := range []string{"", "zz"} {
			if be(none); count(table, "true") != 0 {
				t.Errorf("%s: with the setting %q there are rows", table, none)
			}
		}
		be("*")
		if count(table, "tenant = 'a'") != 1 || count(table, "tenant = 'bb'") != 1 {
			t.Errorf("%s: the rows are not those that were there", table)
		}
	}
	fresh, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	var n int
	if err := fresh.QueryRow("SELECT count(*) FROM calls").Scan(&n); err != nil || n != 0 {
		t.Errorf("a connection that sets nothing sees %d calls: %v", n, err)
	}
}
