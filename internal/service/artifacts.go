package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	artifactsName     = "artifacts"
	artifactsRegister = "artifacts.register"
	artifactsList     = "artifacts.list"
)

// Bounds of what one call makes.
const (
	maxMade     = 1000     // artifacts
	maxParents  = 256      // that are named of one artifact: the newest
	maxMetadata = 64 << 10 // bytes of one artifact's metadata
	maxPath     = 4096     // bytes of a path
	maxWord     = 200      // bytes of a type or a tool's name
)

// A registration is the arguments of artifacts.register.
type registration struct {
	Path     string         `json:"file_path"`
	Type     string         `json:"artifact_type"`
	Tool     string         `json:"source_tool"`
	Metadata jsontext.Value `json:"metadata"`
	ID       string         `json:"artifact_id"` // that the plugin has given out already; "" for one of the host's
}

type artifactList struct {
	Artifacts []ref `json:"artifacts"`
}

// artifactsListed answers artifacts.list.
func artifactsListed(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	if err := decode(artifactsList, args, &nothing{}); err != nil {
		return nil, err
	}
	list, err := g.artifacts(ctx)
	if err != nil {
		return nil, err
	}
	g.see(list)
	return artifactList{refsOf(list)}, nil
}

// registerTask understands artifacts.register: a file that the call made in its
// scratch directory is copied into its session. It is part of the call's
// answer, not an effect: nothing that was there before changes.
func registerTask(g *grant, args json.RawMessage) (task, error) {
	in, err := readRegistration(args)
	if err != nil {
		return task{}, err
	}
	switch {
	case g.reading:
		return task{}, plugin.Errorf(plugin.CodeEffectUndeclared, "%s: %s is only to look now, and would add to the session", artifactsRegister, g.target.Name())
	case g.call.Session == "" || g.broker.Sessions == nil:
		return task{}, plugin.Errorf(plugin.CodeNeedsContext, "%s: the call belongs to no session that could keep %.200s; call it with --session", artifactsRegister, in.Path)
	}
	return task{class: Own, do: func(ctx context.Context) (any, error) { return g.register(ctx, in) },
		dry: func(ctx context.Context) (any, *plugin.Change, error) { return g.registerDry(ctx, in) }}, nil
}

func readRegistration(args json.RawMessage) (registration, error) {
	var in registration
	if err := decode(artifactsRegister, args, &in); err != nil {
		return in, err
	}
	if string(in.Metadata) == "null" {
		in.Metadata = nil
	}
	refuse := func(format string, values ...any) (registration, error) {
		return in, plugin.Errorf(plugin.CodeInvalidInput, artifactsRegister+": "+format, values...)
	}
	switch {
	case in.Path == "":
		return refuse("file_path is empty; it names a file in the scratch directory")
	case len(in.Path) > maxPath || strings.ContainsRune(in.Path, 0):
		return refuse("file_path is longer than %d bytes, or holds a NUL", maxPath)
	case in.ID != "" && !handedOut.MatchString(in.ID):
		return refuse("artifact_id %.100q is not art_ and 8 hexadecimal digits", in.ID)
	case len(in.Type) > maxWord || len(in.Tool) > maxWord:
		return refuse("artifact_type and source_tool have at most %d bytes", maxWord)
	case len(in.Metadata) > maxMetadata:
		return refuse("the metadata has %d bytes; at most %d are kept with an artifact", len(in.Metadata), maxMetadata)
	case len(in.Metadata) > 0 && in.Metadata.Kind() != '{':
		return refuse("the metadata is no JSON object")
	}
	return in, nil
}

var handedOut = pattern.New(`^art_[0-9a-f]{8}$`)

// register copies one file into the session.
func (g *grant) register(ctx context.Context, in registration) (any, error) {
	had, there, err := g.registering(ctx, in)
	if err != nil {
		return nil, err
	}
	if there != nil {
		g.make(there)
		return refOf(there), nil
	}
	file, err := g.open(in.Path, had)
	if err != nil {
		return nil, err
	}
	defer file.close()
	kept, err := g.broker.Sessions.Add(ctx, g.call, file, g.artifactOf(in, had, file))
	if err != nil {
		return nil, err
	}
	g.heard(kept.Labels) // it may be one that is there already
	g.make(&kept)
	return refOf(&kept), nil
}

// registering returns the artifacts that the call may have read, and the one
// that the path means, where it is one already and nothing else is said of it.
func (g *grant) registering(ctx context.Context, in registration) (had []Artifact, there *Artifact, err error) {
	if err := g.mayMake(); err != nil {
		return nil, nil, err
	}
	if had, err = g.had(ctx); err != nil {
		return nil, nil, err
	}
	if a := at(had, in.Path); a != nil && in.ID == "" && (in.Type == "" || in.Type == a.Type) && len(in.Metadata) == 0 {
		return had, a, nil
	}
	return had, nil, nil
}

// at returns the artifact with that path, nil if there is none.
func at(list []Artifact, named string) *Artifact {
	for i := range list {
		if list[i].Path != "" && list[i].Path == filepath.Clean(named) {
			return &list[i]
		}
	}
	return nil
}

// open opens a file that is to be registered: one of the scratch directory, or
// an artifact that shall be one of another type as well.
func (g *grant) open(named string, had []Artifact) (*made, error) {
	file, err := g.find(named, had)
	if err != nil {
		return nil, err
	}
	if err := g.mayKeep(named, file.was.Size()); err != nil {
		file.close()
		return nil, err
	}
	return file, nil
}

// find is open, of a file of any length.
func (g *grant) find(named string, had []Artifact) (*made, error) {
	a := at(had, named)
	if _, beneath := scratchName(named, g.scratchDir); a == nil || beneath { // a dry run's artifacts stay where the plugin can change them
		return g.openScratch(named)
	}
	file, err := os.Open(a.Path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "artifact %s cannot be read: %w", a.ID, plainCause(err))
	}
	was, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &made{name: filepath.Base(a.Path), file: file, was: was}, nil
}

// artifactOf is what a file of the scratch directory is to become.
func (g *grant) artifactOf(in registration, had []Artifact, file *made) Artifact {
	a := Artifact{
		ID: in.ID, Type: in.Type, Name: path.Base(file.name), SourceTool: in.Tool, SourceCall: g.call.ID,
		Labels: plugin.Labels(g.call.Labels, g.Labels()), Metadata: json.RawMessage(in.Metadata),
	}
	if a.SourceTool == "" {
		a.SourceTool = g.target.Manifest.Name
	}
	for _, parent := range had[max(0, len(had)-maxParents):] {
		a.Parents = append(a.Parents, parent.ID)
	}
	return a
}

// had returns the artifacts that the call may have read, as it last saw them.
func (g *grant) had(ctx context.Context) ([]Artifact, error) {
	g.mu.Lock()
	had, known := g.before, g.beforeKnown
	g.mu.Unlock()
	if known {
		return had, nil
	}
	had, err := g.artifacts(ctx)
	if err != nil {
		return nil, err
	}
	g.see(had)
	return had, nil
}

// see takes down what the call has seen that it did not make itself.
func (g *grant) see(list []Artifact) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.beforeKnown = nil, true
	for _, a := range list {
		if !slices.ContainsFunc(g.made, func(m plugin.Artifact) bool { return m.ID == a.ID }) {
			g.before = append(g.before, a)
		}
	}
}

// mayMake refuses more than a call may make.
func (g *grant) mayMake() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tries >= maxMade {
		return plugin.Errorf(plugin.CodeLimitExceeded, "%s: one call registers at most %d artifacts", artifactsRegister, maxMade)
	}
	g.tries++
	return nil
}

// mayKeep refuses a file with which the call would register too much. It counts
// its length, whatever the file takes in scratch: holes are kept as zeros.
func (g *grant) mayKeep(named string, size int64) error {
	most := g.broker.MaxMade
	if most == 0 {
		most = 1 << 30
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if size > most-g.length {
		return plugin.Errorf(plugin.CodeLimitExceeded, "%s: %.300s has %d bytes; one call registers at most %d in all (limits.call_artifact_bytes in mortise.yaml), and this one has asked for %d",
			artifactsRegister, named, size, most, g.length)
	}
	g.length += size
	return nil
}

// make takes down that the call registered an artifact.
func (g *grant) make(a *Artifact) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.made, func(m plugin.Artifact) bool { return m.ID == a.ID }) {
		return
	}
	hash := ""
	if a.Hash != "" {
		hash = "sha256:" + a.Hash
	}
	g.made = append(g.made, plugin.Artifact{ID: a.ID, Type: a.Type, Name: a.Name, Path: a.Path, Hash: hash, Size: a.Size})
}

// Artifacts returns what the call registered, in that order.
func (g *grant) Artifacts() []plugin.Artifact {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.made
}

// Attach gives the services the scratch directory of the process that works on
// the call, and the absolute path at which that process knows it. It is called
// before the plugin has the call.
func (g *grant) Attach(scratch fs.FS, dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scratch, g.scratchDir = scratch, dir
}

// A made is a file that a plugin wrote, held while it is read. Its content is
// what was read: a file that changes meanwhile is an error in place of its end.
type made struct {
	name string // a slash path in the scratch directory
	file fs.File
	was  fs.FileInfo
	read int64
}

// openScratch opens a file of the scratch directory, by a path that the plugin
// uses. It opens nothing else: no way leads out, and pipes and devices are not
// waited for.
func (g *grant) openScratch(named string) (*made, error) {
	g.mu.Lock()
	scratch, dir := g.scratch, g.scratchDir
	g.mu.Unlock()
	if scratch == nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the process of this call has no scratch directory that the host can read")
	}
	name, beneath := scratchName(named, dir)
	if !beneath {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%.300s lies outside the scratch directory; write the file below %s", named, dir)
	}
	refuse := func(err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return plugin.Errorf(plugin.CodeInvalidInput, "there is no file %.300s in the scratch directory", named)
		case errors.Is(err, errNoFile):
			return plugin.Errorf(plugin.CodeInvalidInput, "%.300s is no regular file", named)
		}
		return plugin.Errorf(plugin.CodeInvalidInput, "%.300s cannot be opened beneath the scratch directory: %w", named, plainCause(err))
	}
	file, err := openWithin(scratch, name)
	if err != nil {
		return nil, refuse(err)
	}
	was, err := file.Stat()
	if err == nil && !was.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = file.Close()
		return nil, refuse(err)
	}
	if most := g.broker.maxArtifact(); was.Size() > most {
		_ = file.Close()
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "%.300s has %d bytes; an artifact has at most %d (limits.artifact_bytes)", named, was.Size(), most)
	}
	return &made{name: name, file: file, was: was}, nil
}

var errNoFile = errors.New("not a regular file")

// openWithin opens a regular file, and nothing else.
func openWithin(scratch fs.FS, name string) (fs.File, error) {
	if info, err := fs.Stat(scratch, name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return scratch.Open(name) // which does not block, should it be a pipe by now
}

// scratchName turns the path that a plugin uses into a name in its scratch
// directory.
func scratchName(named, dir string) (name string, beneath bool) {
	name = named
	if path.IsAbs(named) {
		if name, beneath = strings.CutPrefix(path.Clean(named), strings.TrimSuffix(dir, "/")+"/"); !beneath {
			return "", false
		}
	}
	name = path.Clean(name)
	return name, fs.ValidPath(name) && name != "."
}

// plainCause is an error without the path of the host that it names.
func plainCause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (f *made) close() { _ = f.file.Close() }

// Read reads on. Where the file has changed since it was opened, it ends with an
// error.
func (f *made) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	f.read += int64(n)
	if f.read > f.was.Size() {
		return n, f.changed()
	}
	if err == io.EOF {
		now, statErr := f.file.Stat()
		if statErr != nil || now.Size() != f.was.Size() || !now.ModTime().Equal(f.was.ModTime()) || f.read != f.was.Size() {
			return n, f.changed()
		}
	}
	return n, err
}

func (f *made) changed() error {
	return plugin.Errorf(plugin.CodeInvalidInput, "%.300s changed while it was copied; register it once it is complete", f.name)
}

// maxArtifact is how many bytes an artifact may have.
func (b *Broker) maxArtifact() int64 {
	if b.MaxArtifact == 0 {
		return 8 << 30
	}
	return b.MaxArtifact
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
