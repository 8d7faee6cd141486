// Package upkeep is what the command line does to a data directory itself, rather than ask
// its host for: it examines one, and keeps a copy of it.
package upkeep

import (
	"context"
	"io"
	"strconv"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/doctor"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

// What a copy is made of, and what it is made with.
type (
	BackupOptions  = archive.BackupOptions
	RestoreOptions = archive.RestoreOptions
	Manifest       = archive.Manifest
	Restored       = archive.Restored
	BackupPlan     = archive.Plan
	Finding        = doctor.Finding
)

// What is done with copies, as package archive has it.
var (
	Recipients = archive.Recipients
	Identities = archive.Identities
	Backup     = archive.Backup
	PlanBackup = archive.PlanBackup
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

// Planned writes for a person what a backup would have.
func Planned(w io.Writer, p BackupPlan) error {
	t := terminal.NewTable(w, "PART", "FILES", "SIZE")
	for _, part := range p.Parts {
		t.Row(part.Name, strconv.Itoa(part.Files), terminal.Bytes(part.Bytes))
	}
	t.Row("all, before compression", "", terminal.Bytes(p.Bytes))
	return t.Flush()
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
