package host

import (
	"context"
	"encoding/json"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/handed"
	"github.com/mortise-dev/mortise/plugin"
)

// An Attachment is a file or an artifact that a call is given beside its input. A name
// in the input is no authority: a surface opens a file as the user who named it.
type Attachment struct {
	Artifact Artifact     // of the call's session, where File is nil
	File     *plugin.File // one that was opened
}

// OpenFile opens a file as the user of this process, to be given to a call. Nothing of
// it is read.
func OpenFile(path string) (*plugin.File, error) {
	file, err := handed.Open(path)
	return &file, err
}

// attach returns the input of a call with what it is given named in it, and the files
// that go beside it.
func (a API) attach(ctx context.Context, in *Invocation) (json.RawMessage, []plugin.File, error) {
	investigates := in.Target != nil && in.Target.Manifest.Contract.Investigates
	if len(in.Given) == 0 || investigates && in.Session == "" {
		return in.Input, nil, nil
	}
	members := map[string]jsontext.Value{}
	if len(in.Input) > 0 {
		if err := json2.Unmarshal(in.Input, &members); err != nil || members == nil { // null leaves no map
			return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "files and artifacts are named in an object, and the input is none")
		}
	}
	var files []plugin.File
	var err error
	if investigates {
		err = a.nameArtifact(ctx, in, members)
	} else {
		files, err = handOn(in.Given, members)
	}
	if err != nil {
		return nil, nil, err
	}
	input, err := json2.Marshal(members, json2.Deterministic(true))
	return input, files, err
}

// handOn adds an item for each attachment to the member of an input that names files,
// and returns the files among them.
func handOn(given []Attachment, members map[string]jsontext.Value) (files []plugin.File, err error) {
	var list []jsontext.Value
	if there := members[handed.Member]; len(there) > 0 && json2.Unmarshal(there, &list) != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the input's artifacts are not a list")
	}
	for _, g := range given {
		id, name, size := g.Artifact.ID, g.Artifact.Name, g.Artifact.Size
		if g.File != nil {
			id, name, size = g.File.Handle, g.File.Name, g.File.Size
			files = append(files, *g.File)
		}
		item, err := json2.Marshal(map[string]any{"artifact_id": id, "name": name, "size": size}, json2.Deterministic(true))
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	members[handed.Member], err = json2.Marshal(list)
	return files, err
}

// nameArtifact fills in what the input schema of an investigation plugin asks for: the
// id of the first artifact or, where it knows no ids, its path. A schema that knows
// neither is advice: it is the id then, which brings the path. What the input says
// already stays.
func (a API) nameArtifact(ctx context.Context, in *Invocation, members map[string]jsontext.Value) error {
	view, err := a.Sessions().View(ctx, in.Session)
	if err != nil {
		return err
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json2.Unmarshal(in.Target.Operation.Input, &schema) // one that is none knows no member
	first := in.Given[0].Artifact
	name := func(member, value string) error {
		var err error
		if _, given := members[member]; !given {
			members[member], err = json2.Marshal(value)
		}
		return err
	}
	for _, member := range []struct{ name, value string }{
		{"artifact_id", first.ID}, {"file_path", view.Path(first)}, {"path", view.Path(first)},
	} {
		if schema.Properties[member.name] != nil {
			return name(member.name, member.value)
		}
	}
	for _, known := range []string{"artifact_id", "file_path", "path"} {
		if _, given := members[known]; given {
			return nil
		}
	}
	return name("artifact_id", first.ID)
}
