package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// About says of a server what its durability rests on, for people. It opens a
// connection of its own and changes nothing.
func About(ctx context.Context, url string) (string, error) {
	conn, err := look(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	config := conn.Config()
	var version, synchronous string
	var standbys sql.NullString
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names')").
		Scan(&version, &synchronous, &standbys)
	if err != nil {
		return "", err
	}
	level := "no synchronous standby: what was acknowledged survives a crash of the server, not the loss of its disk"
	if standbys.String != "" {
		level = "synchronous standbys " + standbys.String
	}
	return fmt.Sprintf("PostgreSQL %s, database %s on %s, synchronous_commit %s, %s", version, config.Database, config.Host, synchronous, level), nil
}

// Wall says of row-level security, which keeps the rows of tenants apart, that it stands for
// the role of a connection. The error says why it does not, and what to do. It opens a
// connection of its own and changes nothing.
func Wall(ctx context.Context, url string) (string, error) {
	conn, err := look(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var role string
	var super, bypass bool
	err = conn.QueryRow(ctx, "SELECT rolname, rolsuper, rolbypassrls FROM pg_roles WHERE rolname IN (current_user, session_user) ORDER BY rolsuper OR rolbypassrls DESC LIMIT 1").
		Scan(&role, &super, &bypass)
	switch {
	case err != nil:
		return "", err
	case super:
		return "", fmt.Errorf("the role %s is a superuser, so row-level security does not keep tenants apart: connect as a role of its own that owns the tables; see docs/tenants.md", role)
	case bypass:
		return "", fmt.Errorf("the role %s has BYPASSRLS, so row-level security does not keep tenants apart: ALTER ROLE %s NOBYPASSRLS", role, pgx.Identifier{role}.Sanitize())
	}
	return "it holds for the role " + role, nil
}

// look opens a connection for a look at a server.
func look(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	return pgx.ConnectConfig(ctx, config)
}
