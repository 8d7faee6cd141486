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
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return "", err // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
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
