package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/upkeep"
)

func (c *command) backup() *cobra.Command {
	var recipients []string
	var passphrase string
	var dry, scheduled, list bool
	o := upkeep.BackupOptions{}
	return c.command(spec{
		use:   "backup [FILE]",
		short: "Back up everything but the keys to one file, also while a host runs",
		long: `Write everything but the keys to one file: the database as it is at one moment, the
packages, the bytes of artifacts, reference data, the configuration and its policies.
Hosts may be at work meanwhile.

ledger.key and secrets.key are not in it, nor is any other key: keep them apart, or
have these two put in with --with-keys, which needs the backup to be encrypted. Secrets
are in it as the database has them, encrypted.

With --scheduled the backup is one of those that mortise.yaml describes under backups,
which 'mortise serve' writes when they are due. --list shows these, when the next one is
due, and why the last attempt failed, if it did.`,
		example: `  mortise backup state.backup
  mortise backup --recipient age1... --with-keys state.backup.age
  mortise backup --dry-run
  mortise backup --list`,
		door: nowhere,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be in it and how large it is, and write nothing")
			cmd.Flags().BoolVar(&scheduled, "scheduled", false, "write one of the scheduled backups now, and delete those beyond the number that is kept")
			cmd.Flags().BoolVar(&list, "list", false, "list the scheduled backups, and say when the next one is due")
			cmd.Flags().BoolVar(&o.Keys, "with-keys", false, "put ledger.key and secrets.key in; only with --recipient or --passphrase-file")
			cmd.Flags().BoolVar(&o.Force, "force", false, "replace the file, if it is there")
			cmd.Flags().StringArrayVar(&recipients, "recipient", nil, "encrypt it for the holder of the age identity of this recipient, age1...; repeatable")
			cmd.Flags().StringVar(&passphrase, "passphrase-file", "", "encrypt it with the passphrase in this file")
		},
	}, func(ctx context.Context, q *ask) (err error) {
		if c.home == "" {
			return usage{errNoHome}
		}
		if o.Home, o.Config = c.home, c.config; len(q.args) > 0 {
			o.File = q.args[0]
		} else if !dry && !scheduled && !list {
			return usage{errors.New("name the FILE that becomes the backup, or ask with --dry-run what would be in it")}
		}
		if o.Database, err = c.place().FindDatabase(); err != nil {
			return err
		}
		if scheduled || list {
			if o.File != "" || o.Keys || o.Force || len(recipients) > 0 || passphrase != "" {
				return usage{errors.New("mortise.yaml says under backups where scheduled backups are written and how; name no FILE and only --dry-run beside --scheduled or --list")}
			}
			return c.series(ctx, o, list, dry)
		}
		if o.Recipients, err = upkeep.Recipients(recipients, passphrase); err != nil {
			return usage{err}
		}
		if err := c.mayBackup(ctx); err != nil {
			return err
		}
		if dry {
			plan, err := upkeep.PlanBackup(ctx, o)
			switch {
			case err != nil:
				return err
			case c.json:
				return c.print(plan)
			}
			return upkeep.Planned(c.out, plan)
		}
		p := c.errs.Begin("")
		o.Doing = func(what string, written int64) { p.Set(what, terminal.Bytes(written)) }
		m, err := upkeep.Backup(ctx, o)
		p.End()
		if err != nil {
			return err
		}
		return c.backedUp(o.File, o.Keys, m)
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
func (c *command) backedUp(file string, has bool, m upkeep.Manifest) error {
	var files int
	var size int64
	for _, member := range m.Members {
		if !member.Dir {
			files, size = files+1, size+member.Size
		}
	}
	keys := "The keys are not in it. Keep ledger.key and secrets.key, or whatever mortise.yaml names in their place, apart from it."
	if has {
		keys = "Keys are in it: who can open it can read every secret, and write a ledger that holds."
	}
	if c.json {
		return c.print(map[string]any{"file": file, "files": files, "bytes": size, "made_at": m.MadeAt, "database": m.Database, "schema": m.Schema, "heads": m.Heads, "notes": append([]string{keys}, m.Notes...)})
	}
	for _, note := range append([]string{keys}, m.Notes...) {
		c.say("note: %s", note)
	}
	_, err := fmt.Fprintf(c.out, "%s: %d files, %s, as of %s\n", terminal.Safe(file), files, terminal.Bytes(size), terminal.Clock(m.MadeAt))
	return err
}

// series lists the scheduled backups, or writes one of them.
func (c *command) series(ctx context.Context, o upkeep.BackupOptions, list, dry bool) error {
	if err := c.mayBackup(ctx); err != nil {
		return err
	}
	s, err := upkeep.SeriesOf(o)
	if err != nil {
		return err
	}
	if list || dry {
		shown, err := upkeep.ShowSeries(ctx, s, o, dry)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.print(shown)
		}
		return shown.Write(c.out)
	}
	p := c.errs.Begin("")
	file, m, deleted, err := s.Make(ctx, func(what string, written int64) { p.Set(what, terminal.Bytes(written)) })
	p.End()
	if err != nil {
		return err
	}
	for _, old := range deleted {
		c.say("deleted %s", terminal.Safe(old))
	}
	return c.backedUp(file, s.Settings.WithKeys, m)
}
