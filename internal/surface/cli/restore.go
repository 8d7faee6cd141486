package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

func (c *command) restore() *cobra.Command {
	var identities []string
	var passphrase string
	o := upkeep.RestoreOptions{}
	return c.command(spec{
		use:   "restore FILE",
		short: "Restore a backup into a data directory",
		long: `Put a backup into the data directory that --home names.

All of it is checked before anything is written: every file against the manifest, the
database against itself, the ledger link by link. It then takes the place of the data
directory in one step. Keys that are there already are kept, and needed: ledger.key,
and secrets.key where there are secrets.

The database of a PostgreSQL host goes into the one that --database or MORTISE_DATABASE
names, which must be empty, in one transaction.

What was done since the backup is not known to it. So the host is in recovery
afterwards, and runs nothing that has effects until 'mortise recovery confirm'.`,
		example: `  mortise restore state.backup --home ./again
  mortise restore --identity key.txt --with-keys state.backup.age
  mortise restore state.backup --home ./again --database postgres://host@db/again`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&o.Force, "force", false, "put it in the place of a data directory that is not empty, whose files are kept beside it, and of the tables that a host has in the database")
			cmd.Flags().BoolVar(&o.Keys, "with-keys", false, "put the keys of the backup into the data directory, where it has none")
			cmd.Flags().StringArrayVar(&identities, "identity", nil, "a file with age identities that open it; repeatable")
			cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "a file with the passphrase that opens it")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		if c.home == "" {
			return usage{errNoHome}
		}
		o.File, o.Home = q.args[0], c.home
		if err := client.EndBackground(ctx, c.options()); err != nil {
			return err
		}
		if o.Database, err = setup.ChooseDatabase(c.databaseURL(), ""); err != nil {
			return err
		}
		if o.Database != "" && c.as != "" { // there may be no host that could be asked
			return usage{errors.New("a database is restored by its owner: leave --as out")}
		}
		if setup.HasDatabase(c.home) { // what is there is replaced
			if err := c.mayBackup(ctx); err != nil {
				return err
			}
		}
		if o.Identities, err = upkeep.Identities(identities, passphrase); err != nil {
			return usage{err}
		}
		var r upkeep.Restored
		if err := c.during("restoring "+o.File, func() (err error) { r, err = upkeep.Restore(ctx, o); return err }); err != nil {
			return err
		}
		return c.restored(r)
	})
}

// restored says what is there now, and what is to be done next.
func (c *command) restored(r upkeep.Restored) error {
	notes := append([]string{}, r.Manifest.Notes...)
	if len(r.Missing) > 0 {
		notes = append(notes, fmt.Sprintf("%s is not in the data directory: put the file there, unless mortise.yaml says that its key is elsewhere or the host never had one.", strings.Join(r.Missing, " and ")))
	}
	if r.Entries < 0 {
		notes = append(notes, "The ledger was not verified: 'mortise ledger verify' does that once the database is there and of this version.")
	}
	if r.Before != "" {
		notes = append(notes, fmt.Sprintf("What was there before is in %s.", r.Before))
	}
	notes = append(notes, "The host is in recovery: nothing with effects runs until 'mortise recovery confirm --reason TEXT'; 'mortise recovery status' shows what waits.")
	if c.json {
		return c.print(map[string]any{"home": c.home, "made_at": r.Manifest.MadeAt, "entries": r.Entries, "missing": append([]string{}, r.Missing...), "before": r.Before, "notes": notes})
	}
	for _, note := range notes {
		c.say("note: %s", note)
	}
	_, err := fmt.Fprintf(c.out, "%s is as of %s; %d entries of the ledger hold\n", terminal.Safe(c.home), terminal.Clock(r.Manifest.MadeAt), max(0, r.Entries))
	return err
}
