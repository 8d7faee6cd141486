package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

func (c *command) backup() *cobra.Command {
	var recipients []string
	var passphrase string
	o := upkeep.BackupOptions{}
	return c.command(spec{
		use:   "backup FILE",
		short: "Write everything but the keys to one file, also while a host is at work",
		long: `Write everything but the keys to one file: the database as it is at one moment, the
packages, the bytes of artifacts, reference data, the configuration and its policies.
Hosts may be at work meanwhile.

ledger.key and secrets.key are not in it, nor is any other key: keep them apart.
Secrets are in it as the database has them, encrypted. A PostgreSQL database is not in
it; pg_dump backs that up.`,
		example: `  mortise backup state.backup
  mortise backup --recipient age1... state.backup.age`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&o.Force, "force", false, "replace the file, if it is there")
			cmd.Flags().StringArrayVar(&recipients, "recipient", nil, "encrypt it for the holder of the age identity of this recipient, age1...; repeatable")
			cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "encrypt it with the passphrase in this file")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		if c.home == "" {
			return usage{errNoHome}
		}
		o.Home, o.Config, o.File = c.home, c.config, q.args[0]
		if o.Database, err = c.place().FindDatabase(); err != nil {
			return err
		}
		if o.Recipients, err = upkeep.Recipients(recipients, passphrase); err != nil {
			return usage{err}
		}
		if err := c.mayBackup(ctx); err != nil {
			return err
		}
		p := c.errs.Begin("")
		o.Doing = func(what string, written int64) { p.Set(what, terminal.Bytes(written)) }
		m, err := upkeep.Backup(ctx, o)
		p.End()
		if err != nil {
			return err
		}
		return c.backedUp(o.File, m)
	})
}

// mayBackup refuses who may not copy everything that is kept. The administrator may,
// and needs no host for it.
func (c *command) mayBackup(ctx context.Context) error {
	if err := c.ofSite(); err != nil || c.as == "" {
		return err
	}
	return c.withHost(ctx, func(a *app.App) error { return a.As(a.Principal).Admin().MayBackup(ctx) })
}

// backedUp says what the backup is, and what it is not.
func (c *command) backedUp(file string, m upkeep.Manifest) error {
	var files int
	var size int64
	for _, member := range m.Members {
		if !member.Dir {
			files, size = files+1, size+member.Size
		}
	}
	const keys = "The keys are not in it. Keep ledger.key and secrets.key, or whatever mortise.yaml names in their place, apart from it."
	if c.json {
		return c.print(map[string]any{"file": file, "files": files, "bytes": size, "made_at": m.MadeAt, "database": m.Database, "schema": m.Schema, "heads": m.Heads, "notes": append([]string{keys}, m.Notes...)})
	}
	for _, note := range append([]string{keys}, m.Notes...) {
		c.say("note: %s", note)
	}
	_, err := fmt.Fprintf(c.out, "%s: %d files, %s, as of %s\n", terminal.Safe(file), files, terminal.Bytes(size), terminal.Clock(m.MadeAt))
	return err
}
