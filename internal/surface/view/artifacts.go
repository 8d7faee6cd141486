package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Artifacts are artifacts as they are listed. Names are shown whole, however narrow the
// terminal is: other commands take them in place of an id.
var Artifacts = List[host.Artifact]{
	Key:    "artifacts",
	Titles: []string{"ARTIFACT", "TYPE", "SIZE", "CREATED", "SOURCE", "NAME"},
	Row: func(a host.Artifact) []string {
		return []string{a.ID, a.Type, count(a.Size), terminal.Clock(a.CreatedAt), terminal.Dash(a.SourceTool), a.Name}
	},
}

// ArtifactTypes are the types that artifacts have.
var ArtifactTypes = List[host.ArtifactType]{
	Key:    "types",
	Titles: []string{"TYPE", "IS", "RECOGNISED BY"},
	Row: func(t host.ArtifactType) []string {
		return []string{t.Name, t.What, terminal.Dash(strings.Join(t.Suffixes, " "))}
	},
}

// An ArtifactShown is an artifact with those around it.
type ArtifactShown struct {
	Artifact host.Artifact   `json:"artifact"`
	Became   []host.Artifact `json:"became"`
	MadeFrom []host.Artifact `json:"made_from"`
}

// Artifact shows an artifact with those around it.
func Artifact(w io.Writer, s ArtifactShown) error {
	a := s.Artifact
	t := terminal.Details(w)
	t.Row("artifact", a.ID)
	t.Row("session", a.Session)
	t.Row("name", a.Name)
	t.Row("type", a.Type)
	t.Row("size", count(a.Size))
	t.Row("sha256", a.SHA256)
	t.Row("source", terminal.Dash(a.SourceTool))
	t.Some("call", a.SourceCall)
	t.Some("labels", a.Labels...)
	if string(a.Metadata) != "{}" {
		t.Row("metadata", string(a.Metadata))
	}
	t.Some("stored", a.StorageURI)
	t.Row("created", terminal.Clock(a.CreatedAt))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		rows  []host.Artifact
	}{{"made from", s.MadeFrom}, {"became", s.Became}} {
		if len(part.rows) > 0 {
			fmt.Fprintf(w, "\n%s\n", part.title)
			if err := Artifacts.Table(w, part.rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddedArtifacts shows what was registered.
func AddedArtifacts(w io.Writer, added []host.Artifact) error {
	t := terminal.Details(w)
	for _, a := range added {
		t.Row(a.ID, a.Type, count(a.Size), a.Name)
	}
	return t.Flush()
}
