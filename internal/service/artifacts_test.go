package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// kept are sessions in memory, with the files beside them.
type kept struct {
	dir string

	mu   sync.Mutex
	list []Artifact
	data map[string]string
}

func (k *kept) Open(context.Context, *plugin.Call) (string, []Artifact, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return "log_analysis", slices.Clone(k.list), nil
}

func (k *kept) Add(_ context.Context, call *plugin.Call, r io.Reader, a Artifact) (Artifact, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return Artifact{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	sum := sha256.Sum256(raw)
	a.ID, a.Hash, a.Size = fmt.Sprintf("art_%08x", len(k.list)+1), hex.EncodeToString(sum[:]), int64(len(raw))
	a.Path = filepath.Join(k.dir, a.ID, a.Name)
	for _, had := range k.list {
		if had.Hash == a.Hash && had.SourceCall == a.SourceCall {
			return had, nil
		}
	}
	k.list = append(k.list, a)
	if k.data == nil {
		k.data = map[string]string{}
	}
	k.data[a.ID] = string(raw)
	return a, nil
}

// working is a scene of a tool that works in a session, with a scratch
// directory of its own.
func working(t *testing.T) (s *scene, k *kept, g *grant, dir string) {
	s = newScene(t)
	k = &kept{dir: t.TempDir()}
	s.broker.Sessions = k
	s.broker.TypeOf = func(name string, _ []byte) string { return "of " + filepath.Ext(name) }
	s.target.Operation.Kind, s.target.Operation.Effects, s.target.Operation.Timeout = plugin.Tool, nil, 30*time.Second
	s.call.Session = "sess_000000000001"
	g = s.services().(*grant)
	dir = t.TempDir()
	g.Attach(os.DirFS(dir), "/scratch/p-1")
	return s, k, g, dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, g plugin.Services, method string, args any) (map[string]any, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	value, err := g.Serve(t.Context(), method, raw)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if err := json.Unmarshal(value, &answer); err != nil {
		t.Fatalf("%s: %s", method, value)
	}
	return answer, nil
}

type m = map[string]any

func TestASessionIsOpenedWithWhatItHolds(t *testing.T) {
	t.Parallel()
	s, k, g, _ := working(t)
	k.list = []Artifact{
		{ID: "art_0000000a", Type: "log_stream", Name: "auth.log", Path: "/v/art_0000000a/auth.log", Labels: []string{plugin.Untrusted}},
		{ID: "art_0000000b", Type: "text", Name: "n.txt", Path: "/v/art_0000000b/n.txt", SourceTool: "other", StorageURI: "gs://b/n", Metadata: []byte(`{"a":1}`)},
	}
	s.call.Timeout = 5 * time.Second
	got, err := serve(t, g, "session.open", m{})
	if err != nil {
		t.Fatal(err)
	}
	refs := got["artifacts"].([]any)
	first, second := refs[0].(m), refs[1].(m)
	limits := got["limits"].(m)
	switch {
	case got["session_id"] != s.call.Session, got["pillar"] != "log_analysis", got["llm_enabled"] != false:
		t.Errorf("%v", got)
	case first["file_path"] != "/v/art_0000000a/auth.log", first["source_tool"] != nil, first["storage_uri"] != nil, fmt.Sprint(first["metadata"]) != "map[original_filename:auth.log]":
		t.Errorf("first: %v", first)
	case second["source_tool"] != "other", second["storage_uri"] != "gs://b/n", fmt.Sprint(second["metadata"]) != "map[a:1]":
		t.Errorf("second: %v", second)
	case limits["timeout"] != 5.0, limits["max_output_size"] != float64(4<<20), limits["max_artifact_size"] != float64(8<<30):
		t.Errorf("limits: %v", limits)
	case !slices.Equal(g.Labels(), []string{plugin.Untrusted}):
		t.Errorf("the answer is not tainted with what the session holds: %v", g.Labels())
	}
	if _, err := serve(t, g, "session.open", m{"more": 1}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an unknown argument: %v", err)
	}
}

func TestOutsideASessionTheArtifactsAreWhatWasHandedOn(t *testing.T) {
	t.Parallel()
	s, _, _, _ := working(t)
	s.call.Session = ""
	s.call.Input = []byte(`{"artifacts":[{"path":"/d/not_handed_on"}]}`)
	s.call.Files = []plugin.File{{Handle: "art_0123456789abcdef", Name: "auth.log.1", Path: "/d/auth.log.1"}, {Handle: "art_12345678", Name: "x.pcap", Path: "/d/x.pcap"}}
	got, err := serve(t, s.services(), "session.open", m{})
	if err != nil {
		t.Fatal(err)
	}
	refs := got["artifacts"].([]any)
	if len(refs) != 2 || got["session_id"] != "" || refs[0].(m)["artifact_type"] != "of .1" || refs[0].(m)["file_path"] != "/d/auth.log.1" || refs[1].(m)["artifact_id"] != "art_12345678" {
		t.Errorf("%v", got)
	}
	if _, err := serve(t, s.services(), artifactsRegister, m{"file_path": "x"}); plugin.CodeOf(err) != plugin.CodeNeedsContext {
		t.Errorf("registering: %v", err)
	}
}

// TestWhatACallMakesIsFiled: with the labels of the call and of all that it could
// read, and with that as its parents.
func TestWhatACallMakesIsFiled(t *testing.T) {
	t.Parallel()
	s, k, _, dir := working(t)
	s.call.Labels = []string{plugin.Private}
	viewed := filepath.Join(t.TempDir(), "a.log")
	write(t, viewed, "seen")
	k.list = []Artifact{{ID: "art_0000000a", Type: "text", Labels: []string{plugin.Untrusted}, Path: viewed}}
	g := s.services().(*grant)
	g.Attach(os.DirFS(dir), "/scratch/p-1")
	write(t, filepath.Join(dir, "workspace/artifacts/out.json"), `{"n":1}`)
	for _, path := range []string{"workspace/artifacts/out.json", "/scratch/p-1/workspace/artifacts/out.json", "./workspace//artifacts/../artifacts/out.json"} {
		got, err := serve(t, g, artifactsRegister, m{"file_path": path, "artifact_type": "json_events", "metadata": m{"rows": 1}})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got["artifact_id"] != "art_00000002" || got["artifact_type"] != "json_events" || got["source_tool"] != "sample" {
			t.Errorf("%s: %v", path, got)
		}
	}
	a := k.list[1]
	if a.SourceCall != "call-1" || !slices.Equal(a.Labels, []string{plugin.Private, plugin.Untrusted}) || !slices.Equal(a.Parents, []string{"art_0000000a"}) || a.Name != "out.json" || k.data[a.ID] != `{"n":1}` {
		t.Errorf("kept: %+v %q", a, k.data)
	}
	made := g.Artifacts()
	if len(made) != 1 || made[0].ID != a.ID || made[0].Hash != "sha256:"+a.Hash || made[0].Size != 7 {
		t.Errorf("made: %+v", made)
	}
	// What is in the view is an artifact already, unless more is said of it.
	for _, args := range []m{{"file_path": viewed}, {"file_path": viewed, "artifact_type": "text", "source_tool": "sample"}} {
		if got, err := serve(t, g, artifactsRegister, args); err != nil || got["artifact_id"] != "art_0000000a" {
			t.Errorf("of the view: %v %v", got, err)
		}
	}
	other := m{"file_path": viewed, "artifact_type": "log_stream", "metadata": m{"vendor": "acme"}}
	if got, err := serve(t, g, artifactsRegister, other); err != nil || got["artifact_id"] != "art_00000003" {
		t.Errorf("of the view, as another: %v %v", got, err)
	}
	if a := k.list[2]; a.Name != "a.log" || k.data[a.ID] != "seen" || a.Type != "log_stream" || string(a.Metadata) != `{"vendor":"acme"}` {
		t.Errorf("kept: %+v", a)
	}
	// What it made later has no parent that it made before, and is listed.
	write(t, filepath.Join(dir, "second"), "2")
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "second", "metadata": nil, "source_tool": "helper"}); err != nil {
		t.Fatal(err)
	}
	if b := k.list[3]; !slices.Equal(b.Parents, []string{"art_0000000a"}) || b.SourceTool != "helper" || b.Type != "" {
		t.Errorf("second: %+v", b)
	}
	if got, err := serve(t, g, artifactsList, m{}); err != nil || len(got["artifacts"].([]any)) != 4 {
		t.Errorf("list: %v %v", got, err)
	}
}

// TestNothingButFilesOfTheScratchDirectoryIsRegistered walks the ways out.
func TestNothingButFilesOfTheScratchDirectoryIsRegistered(t *testing.T) {
	t.Parallel()
	s, k, _, dir := working(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	write(t, filepath.Join(dir, "good"), "good")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, target := range map[string]string{"out": secret, "up": "../../../../../../../etc/passwd", "dir-out": filepath.Dir(secret), "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := s.services().(*grant)
	g.Attach(root.FS(), "/scratch/p-1")
	for _, path := range []string{
		"out", "up", "dir-out/secret", "loop", "pipe", "folder", "absent", ".", "..", "../x", "/", "/scratch/p-1", "/scratch/p-1/", "/scratch/p-1/../p-2/x", "/scratch/p-11/x",
		secret, "/etc/passwd", "/scratch/p-1/../../etc/passwd", "good/x", "a\x00b", strings.Repeat("x", maxPath+1), "",
	} {
		if got, err := serve(t, g, artifactsRegister, m{"file_path": path}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%.50q: %v, %v", path, got, err)
		} else if strings.Contains(err.Error(), dir) {
			t.Errorf("%.50q: the message tells where the host has it: %v", path, err)
		}
	}
	if len(k.list) != 0 || len(g.Artifacts()) != 0 {
		t.Errorf("kept: %+v", k.list)
	}
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "good"}); err != nil {
		t.Errorf("a good one after all of these: %v", err)
	}
	none := s.services()
	if _, err := serve(t, none, artifactsRegister, m{"file_path": "good"}); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("without a scratch directory: %v", err)
	}
}

// A changing file grows, shrinks or is replaced while it is read.
type changing struct {
	fs.FS
	change func()
}

func (c changing) Open(name string) (fs.File, error) {
	file, err := c.FS.Open(name)
	if err == nil {
		file = changingFile{file, c.change}
	}
	return file, err
}

type changingFile struct {
	fs.File
	change func()
}

func (f changingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p[:min(len(p), 4)])
	f.change()
	return n, err
}

func TestAFileThatChangesIsNotKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"grows":   func(path string) error { return os.WriteFile(path, []byte("0123456789abcdef"), 0o600) },
		"shrinks": func(path string) error { return os.Truncate(path, 5) },
		"other":   func(path string) error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)) },
	} {
		_, k, g, dir := working(t)
		path := filepath.Join(dir, "file")
		write(t, path, "0123456789")
		g.Attach(changing{os.DirFS(dir), func() { _ = change(path) }}, "/s")
		_, err := serve(t, g, artifactsRegister, m{"file_path": "file"})
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), "changed") || len(k.list) != 0 {
			t.Errorf("%s: %v, %d kept", name, err, len(k.list))
		}
	}
}

func TestBoundsOfRegistering(t *testing.T) {
	t.Parallel()
	s, k, g, dir := working(t)
	write(t, filepath.Join(dir, "f"), "1")
	for i := range maxMade {
		if _, err := serve(t, g, artifactsRegister, m{"file_path": "f"}); err != nil {
			t.Fatalf("number %d: %v", i+1, err)
		}
	}
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "f"}); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Errorf("one more than %d: %v", maxMade, err)
	}
	g = s.services().(*grant)
	g.Attach(os.DirFS(dir), "/s")
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "f", "metadata": m{"x": strings.Repeat("x", maxMetadata)}}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("much metadata: %v", err)
	}
	for _, metadata := range []any{1, "x", []int{1}} {
		if _, err := serve(t, g, artifactsRegister, m{"file_path": "f", "metadata": metadata}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("metadata %v: %v", metadata, err)
		}
	}
	s.broker.MaxArtifact = 3
	write(t, filepath.Join(dir, "long"), "1234")
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "long"}); plugin.CodeOf(err) != plugin.CodeLimitExceeded || !strings.Contains(err.Error(), "artifact_bytes") {
		t.Errorf("a long file: %v", err)
	}
	reading := s.broker.Reading(s.target, s.call)
	if _, err := serve(t, reading, artifactsRegister, m{"file_path": "f"}); plugin.CodeOf(err) != plugin.CodeEffectUndeclared {
		t.Errorf("while it only looks: %v", err)
	}
	for i := range maxParents + 10 {
		k.list = append(k.list, Artifact{ID: fmt.Sprintf("art_%08x", 1000+i)})
	}
	g = s.services().(*grant)
	g.Attach(os.DirFS(dir), "/s")
	write(t, filepath.Join(dir, "n"), "new")
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "n"}); err != nil {
		t.Fatal(err)
	}
	if parents := k.list[len(k.list)-1].Parents; len(parents) != maxParents || parents[maxParents-1] != fmt.Sprintf("art_%08x", 1000+maxParents+9) {
		t.Errorf("%d parents", len(parents))
	}
}

// A call registers so many bytes in all, in the length of its files: holes are
// kept as zeros.
func TestACallRegistersSoManyBytesInAll(t *testing.T) {
	t.Parallel()
	s, _, g, dir := working(t)
	s.broker.MaxMade = 10 << 20
	for i := range 4 {
		name := fmt.Sprintf("sparse%d", i)
		write(t, filepath.Join(dir, name), "1")
		if err := os.Truncate(filepath.Join(dir, name), 3<<20); err != nil {
			t.Fatal(err)
		}
		_, err := serve(t, g, artifactsRegister, m{"file_path": name})
		if i < 3 && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if i == 3 && (plugin.CodeOf(err) != plugin.CodeLimitExceeded || !strings.Contains(err.Error(), "limits.call_artifact_bytes")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "sparse0"}); plugin.CodeOf(err) != plugin.CodeLimitExceeded {
		t.Errorf("the same again: %v", err)
	}
	g = s.services().(*grant)
	g.Attach(os.DirFS(dir), "/s")
	if _, err := serve(t, g, artifactsRegister, m{"file_path": "sparse3"}); err != nil {
		t.Errorf("another call: %v", err)
	}
}

// table is reference data in memory.
type table map[string]string

func (d table) Get(_ context.Context, key string, _ int) (json.RawMessage, bool, error) {
	value, found := d[key]
	return json.RawMessage(value), found, nil
}

func TestReferenceDataIsLookedUp(t *testing.T) {
	t.Parallel()
	s, _, g, _ := working(t)
	if got, err := serve(t, g, referenceGet, m{"key": "k"}); err != nil || got["found"] != false || got["value"] != nil {
		t.Errorf("without any: %v %v", got, err)
	}
	s.broker.Reference = table{"k": `{"T1001":{"name":"n"}}`}
	if got, err := serve(t, g, referenceGet, m{"key": "k"}); err != nil || got["found"] != true || fmt.Sprint(got["value"]) != "map[T1001:map[name:n]]" {
		t.Errorf("%v %v", got, err)
	}
	if got, err := serve(t, g, referenceGet, m{"key": "other"}); err != nil || got["found"] != false {
		t.Errorf("%v %v", got, err)
	}
	for _, args := range []any{m{"key": ""}, m{}, m{"key": strings.Repeat("k", maxWord+1)}, m{"key": 1}} {
		if _, err := serve(t, g, referenceGet, args); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%v: %v", args, err)
		}
	}
}
