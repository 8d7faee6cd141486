// Package upkeep is what the command line does to a data directory itself, rather than ask
// its host for: it examines one, keeps a copy of it, and holds the processes of its sessions.
package upkeep

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// What a copy is made of, and what it is made with.
type (
	BackupOptions  = archive.BackupOptions
	RestoreOptions = archive.RestoreOptions
	Manifest       = archive.Manifest
	Restored       = archive.Restored
	Finding        = doctor.Finding
)

// What is done with copies, as package archive has it.
var (
	Recipients = archive.Recipients
	Identities = archive.Identities
	Backup     = archive.Backup
	Restore    = archive.Restore
)

// CheckServer returns what is wrong with the URL of a server, nil if nothing is.
var CheckServer = doctor.CheckServer

// A Subject is what is examined. Read reads its store, and Open opens its host.
type Subject struct {
	Home, Config, Database string
	Read                   func(ctx context.Context, do func(host.Store) error) error
	Open                   func(ctx context.Context) (*app.App, error)
}

// Examine looks at everything that a host stands on, and reports whether it can work there.
func Examine(ctx context.Context, s Subject) (found []Finding, healthy bool, err error) {
	found, err = doctor.Examine(ctx, doctor.Subject{
		Home: s.Home, Config: s.Config, Database: s.Database, Read: s.Read,
		Open: func(ctx context.Context) (*doctor.Host, error) {
			a, err := s.Open(ctx)
			if err != nil {
				return nil, err
			}
			return a.Examined(), nil
		},
	})
	return told(found), err == nil && doctor.Healthy(found), err
}

// ExamineServer looks at how a host can be used over the network, by its URL and a token.
// healthy says whether all that is needed is there. CheckServer says whether a text is such
// a URL.
func ExamineServer(ctx context.Context, url, token string) (found []Finding, healthy bool, err error) {
	found, err = doctor.ExamineServer(ctx, doctor.Server{URL: url, Token: token})
	return told(found), err == nil && doctor.Healthy(found), err
}

// told puts what went wrong into the details.
func told(found []Finding) []Finding {
	for i, f := range found {
		if f.Err != nil {
			found[i].Detail = view.Message(f.Err)
		}
	}
	return found
}

// Findings writes what was found for a person.
func Findings(w io.Writer, found []Finding) error {
	t := terminal.NewTable(w, "", "WHAT", "DETAIL")
	for _, f := range found {
		mark := "ok"
		switch {
		case !f.OK && f.Needed:
			mark = "fail"
		case !f.OK:
			mark = "warn"
		}
		t.Row(mark, f.What, terminal.OneLine(f.Detail, 300))
	}
	return t.Flush()
}

// Keep holds the processes of one session until they are idle for too long, for the command
// lines that use it.
func Keep(ctx context.Context, o app.Options, session string) error {
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return err
	}
	cfg, configPath, err := setup.ReadConfig(home, o.Config)
	if err != nil {
		return err
	}
	held := host.SessionHost{Session: session, Idle: time.Duration(cfg.Processes.SessionIdle)}
	held.Home, held.Tenant, held.Config, held.Database = home, cfg.Tenant, configPath, o.Database
	if o.Tenant != "" {
		held.Tenant = o.Tenant
	}
	o.Home = home
	held.Open = func(ctx context.Context, earlier bool) (*host.Host, func() error, error) {
		o := o
		o.Earlier = func(string, string) bool { return earlier }
		a, err := app.Open(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		return a.Host, a.Close, nil
	}
	return held.Serve(ctx)
}
