package view

import (
	"errors"
	"io"
	"strconv"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Sessions are sessions as they are listed.
var Sessions = List[host.Session]{
	Key:    "sessions",
	Titles: []string{"SESSION", "CREATED", "STATE", "PILLAR", "ARTIFACTS", "NAME"},
	Fit:    Always,
	Row: func(s host.Session) []string {
		return []string{s.ID, terminal.Clock(s.CreatedAt), s.State, terminal.Dash(s.Pillar), strconv.Itoa(s.Artifacts), terminal.Dash(s.Name)}
	},
}

// A SessionShown is a session with its artifacts.
type SessionShown struct {
	Artifacts []host.Artifact `json:"artifacts"`
	Session   host.Session    `json:"session"`
}

// Session shows a session with its artifacts.
func Session(w io.Writer, shown SessionShown) error {
	s := shown.Session
	t := terminal.Details(w)
	t.Row("session", s.ID)
	t.Some("name", s.Name)
	t.Row("state", s.State)
	t.Row("pillar", terminal.Dash(s.Pillar))
	t.Some("labels", s.Labels...)
	t.Row("created", terminal.Clock(s.CreatedAt))
	t.Row("changed", terminal.Clock(s.UpdatedAt))
	return errors.Join(t.Flush(), Artifacts.below(w, shown.Artifacts))
}
