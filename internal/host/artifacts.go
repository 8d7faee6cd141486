package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/plugin"
)

// A LaidFile is a file of a directory: where it lies in it, and which artifact it is.
type LaidFile struct {
	Path     string `json:"path"` // with slashes
	Artifact string `json:"artifact_id"`
}

// AddDirectory registers a directory whose files are artifacts already, as an artifact
// that says which they are: tools of Event Mill see it as a directory.
func (m Sessions) AddDirectory(ctx context.Context, in, name string, files []LaidFile, a NewArtifact) (Artifact, error) {
	listing, err := json.MarshalIndent(map[string]any{"files": files}, "", " ")
	if err != nil {
		return Artifact{}, err
	}
	a.Type = cmp.Or(a.Type, "text")
	if a.Metadata, err = json.Marshal(map[string]any{"original_filename": name, "directory": true}); err != nil {
		return Artifact{}, err
	}
	return m.AddArtifact(ctx, in, bytes.NewReader(listing), a)
}

// MadeFor returns the id of the artifact of a call that is the file which a member of
// its input asked for: the one registered for it, or the last of that name.
func (m Sessions) MadeFor(ctx context.Context, in, member, name string, made []plugin.Artifact) (id string, err error) {
	var known []Artifact
	for _, a := range made {
		if a.ID == "" {
			continue
		}
		one, err := m.Artifact(ctx, in, a.ID)
		if err != nil {
			return "", err
		}
		known = append(known, one)
	}
	return MadeAmong(known, member, name, made), nil
}

// MadeAmong is [Sessions.MadeFor] where the artifacts of the session are known.
func MadeAmong(known []Artifact, member, name string, made []plugin.Artifact) (id string) {
	for _, a := range made {
		if a.ID == "" {
			continue
		}
		if a.Name == name {
			id = a.ID
		}
		i := slices.IndexFunc(known, func(one Artifact) bool { return one.ID == a.ID })
		if i < 0 {
			continue
		}
		var said struct {
			As string `json:"exported_as"`
		}
		if json2.Unmarshal(known[i].Metadata, &said) == nil && said.As == member {
			return a.ID
		}
	}
	return id
}
