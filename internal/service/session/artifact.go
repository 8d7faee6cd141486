package session

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/plugin"
)

// An Artifact is a registered file. It never changes.
type Artifact struct {
	ID         string          `json:"id"` // art_ and 8 hexadecimal digits, unique within its session
	Session    string          `json:"session"`
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	SHA256     string          `json:"sha256"`
	Size       int64           `json:"size"`
	SourceTool string          `json:"source_tool"` // "" for a person's file
	SourceCall string          `json:"source_call"` // the call that registered it
	Parents    []string        `json:"parents"`     // the artifacts it was made from
	Labels     []string        `json:"labels"`      // its own and those of its parents
	Metadata   json.RawMessage `json:"metadata"`    // an object
	StorageURI string          `json:"storage_uri"` // where its bytes are, if that is an object store
	CreatedAt  time.Time       `json:"created_at"`

	inline bool // its bytes are in the store, and not among the blobs
}

var artifactID = pattern.New(`^art_[0-9a-f]{8}$`)

// An Add says what is to be registered.
type Add struct {
	ID         string // that was given out already: the artifact has it, even if an equal one is there
	Name       string // a file name: no directory
	Type       string // one of [Types]; found out where it is empty
	SourceTool string
	SourceCall string
	Parents    []string
	Labels     []string
	Metadata   json.RawMessage // an object; nil for an empty one

	// Progress hears how many bytes of a person's file were read, each byte
	// once. It may be nil.
	Progress func(done int64)
}

// Bounds of what is said of one artifact.
const (
	maxFileName = 255 // bytes
	maxSource   = 255 // bytes of a tool's name, and of a call's id
	maxParents  = 256
	maxMetadata = 64 << 10
	maxHead     = 64 << 10 // bytes that are looked at to find out a type
)

// Add registers what r holds until its end. The same bytes under the same name,
// type and labels from the same source are the artifact that is there already.
// On an error nothing is kept.
func (s *Sessions) Add(ctx context.Context, tenant, session string, r io.Reader, a Add) (Artifact, error) {
	added, _, err := s.add(ctx, tenant, session, r, a)
	return added, err
}

// AddShown is Add, and shows the artifact in the view of its session, and no
// other one: what a call registers is there at once, however many there are.
func (s *Sessions) AddShown(ctx context.Context, tenant, session string, r io.Reader, a Add) (Artifact, View, error) {
	added, data, err := s.add(ctx, tenant, session, r, a)
	if err != nil {
		return Artifact{}, View{}, err
	}
	v := View{s.viewDir(tenant, added.Session)}
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return Artifact{}, View{}, err
	}
	return added, v, s.show(ctx, tenant, v, &added, data)
}

// add is Add, and returns as well the bytes of an artifact that is kept with its
// row.
func (s *Sessions) add(ctx context.Context, tenant, session string, r io.Reader, a Add) (added Artifact, data []byte, err error) {
	if err := a.check(); err != nil {
		return Artifact{}, nil, err
	}
	if !Whole(session) {
		in, err := s.Get(ctx, tenant, session)
		if err != nil {
			return Artifact{}, nil, err
		}
		session = in.ID
	}
	m := &metered{Reader: &bounded{r, s.MaxArtifact, a.Name}, s: s, ctx: ctx, tenant: tenant, session: session}
	defer func() { m.done(added.ID != "") }()
	seen := max(maxHead, s.MaxInline+1)
	head := bufio.NewReaderSize(m, seen)
	start, err := head.Peek(seen)
	if err != nil && err != io.EOF {
		return Artifact{}, nil, reading(a.Name, err)
	}
	if a.Type == "" {
		a.Type = Detect(a.Name, start[:min(len(start), maxHead)])
	}
	if err == io.EOF && len(start) <= s.MaxInline {
		added, err = s.addSmall(ctx, tenant, session, start, a)
		return added, start, err
	}
	added, err = s.addLarge(ctx, tenant, session, head, a)
	return added, nil, err
}

// addSmall registers bytes that are kept in the store, with their row. Whether
// there is such a session, and an open one, the transaction finds out.
func (s *Sessions) addSmall(ctx context.Context, tenant, session string, data []byte, a Add) (Artifact, error) {
	sum := sha256.Sum256(data)
	row, err := s.register(ctx, tenant, session, content{sha256: hex.EncodeToString(sum[:]), size: int64(len(data)), data: data}, a)
	if err != nil {
		return Artifact{}, err
	}
	s.recent.add(row)
	return artifactOf(row), nil
}

// addLarge registers what r holds, which is kept among the blobs.
func (s *Sessions) addLarge(ctx context.Context, tenant, session string, r io.Reader, a Add) (Artifact, error) {
	in, err := s.Get(ctx, tenant, session)
	if err != nil {
		return Artifact{}, err
	}
	if in.State != string(sessionOpen) {
		return Artifact{}, closed(in.ID)
	}
	if s.Sift != nil {
		r = s.Sift(r, a.Name)
	}
	staged, err := s.Blobs.Stage(ctx, r)
	if err != nil {
		return Artifact{}, reading(a.Name, err)
	}
	defer staged.Discard()
	if err := staged.Keep(ctx); err != nil {
		return Artifact{}, reading(a.Name, err)
	}
	row, err := s.register(ctx, tenant, in.ID, content{sha256: staged.SHA256, size: staged.Size, uri: s.Blobs.URI(staged.SHA256)}, a)
	if err != nil {
		return Artifact{}, errors.Join(err, s.forget(context.WithoutCancel(ctx), staged.SHA256))
	}
	s.recent.add(row)
	// Once more: a session with the same bytes may have been deleted meanwhile.
	if err := staged.Keep(ctx); err != nil {
		return Artifact{}, reading(a.Name, err)
	}
	return artifactOf(row), nil
}

// A content is the bytes of an artifact: themselves where they are kept with
// its row, and not nil then.
type content struct {
	sha256 string
	size   int64
	uri    string
	data   []byte
}

// register puts an artifact into the store, or finds that it is there.
func (s *Sessions) register(ctx context.Context, tenant, session string, c content, a Add) (row *artifactRow, err error) {
	err = s.write(ctx, func(tx Tx) error {
		row = nil
		labels := slices.Clone(a.Labels)
		had, err := s.parentLabels(ctx, tx, tenant, session, a.Parents)
		if err != nil {
			return err
		}
		for _, parent := range a.Parents {
			its, there := had[parent]
			if !there {
				return plugin.Errorf(plugin.CodeNotFound, "artifact %.100q, which %s was made from, is not in session %s", parent, a.Name, session)
			}
			labels = append(labels, its...)
		}
		slices.Sort(labels)
		wanted := artifactRow{
			Tenant: tenant, SessionID: session, Type: a.Type, Name: a.Name, SHA256: c.sha256, Size: c.size,
			SourceTool: a.SourceTool, SourceCall: a.SourceCall, Parents: append([]string{}, a.Parents...), Labels: append([]string{}, slices.Compact(labels)...),
			Metadata: string(a.Metadata), StorageURI: c.uri, CreatedAt: s.now(),
		}
		if row, err = s.nameRow(ctx, tx, &wanted, a.ID); err != nil || row != nil {
			return err
		}
		added, prior, open, err := tx.InsertArtifact(wanted, c.data)
		switch {
		case err != nil:
			return err
		case !open:
			if _, err := find(ctx, tx, tenant, session); err != nil {
				return err
			}
			return closed(session)
		case prior != nil:
			row = prior
			return nil
		case added.N > maxArtifacts:
			return plugin.Errorf(plugin.CodeLimitExceeded, "session %s has %d artifacts, and no session has more; 'mortise sessions create' begins another", session, maxArtifacts)
		}
		row = added
		return s.note(tx, tenant, plugin.EntryArtifactRegistered, session+"/"+row.ID, map[string]any{
			"session": session, "artifact": row.ID, "type": row.Type, "name": row.Name, "sha256": row.SHA256, "size": row.Size,
			"source_tool": row.SourceTool, "source_call": row.SourceCall, "parents": row.Parents, "labels": row.Labels,
		})
	})
	return row, err
}

// parentLabels returns the labels of what an artifact was made from. An
// artifact goes only with its session, and only an open session takes another
// one, so that what is remembered of it holds.
func (s *Sessions) parentLabels(ctx context.Context, tx Tx, tenant, session string, parents []string) (map[string][]string, error) {
	if known, all := s.recent.labels(tenant, session, parents); all {
		return known, nil
	}
	return tx.ArtifactLabels(ctx, tenant, session, parents)
}

// nameRow gives a row its id: a fresh one, or the one that was given out. What
// has that id by now is an error, unless the same call has registered it before.
func (s *Sessions) nameRow(ctx context.Context, tx Tx, wanted *artifactRow, id string) (prior *artifactRow, err error) {
	if id == "" {
		wanted.ID, err = freshID("art_", 4, func(id string) (bool, error) {
			had, err := tx.Artifact(ctx, wanted.Tenant, wanted.SessionID, id)
			return had != nil, err
		})
		return nil, err
	}
	wanted.ID, wanted.Promised = id, true
	had, err := tx.Artifact(ctx, wanted.Tenant, wanted.SessionID, id)
	if had == nil || err != nil {
		return nil, err
	}
	if had.SourceCall != "" && had.SourceCall == wanted.SourceCall && had.SHA256 == wanted.SHA256 && had.Name == wanted.Name {
		return had, nil // a call that is carried out again
	}
	return nil, plugin.Errorf(plugin.CodeInvalidInput, "session %s has another artifact %s already; %s was not registered under that id", wanted.SessionID, id, wanted.Name)
}

// Artifacts returns the artifacts of a session, oldest first.
func (s *Sessions) Artifacts(ctx context.Context, tenant, session string) ([]Artifact, error) {
	in, err := find(ctx, s.Store, tenant, session)
	if err != nil {
		return nil, err
	}
	return s.of(ctx, in)
}

// of returns the artifacts of a session that was found.
func (s *Sessions) of(ctx context.Context, in *sessionRow) ([]Artifact, error) {
	if known := s.recent.list(in); known != nil {
		return known, nil
	}
	rows, err := s.Store.Artifacts(ctx, in.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	all := make([]Artifact, len(rows))
	for i := range rows {
		all[i] = artifactOf(&rows[i])
	}
	s.recent.keep(in, all)
	return all, nil
}

// Artifact returns one artifact of a session by its id, or by a name that no
// other has.
func (s *Sessions) Artifact(ctx context.Context, tenant, session, id string) (Artifact, error) {
	all, err := s.Artifacts(ctx, tenant, session)
	if err != nil {
		return Artifact{}, err
	}
	return Named(all, session, id)
}

// Named returns the one of a session's artifacts that has an id, or a name that no other has.
func Named(all []Artifact, session, id string) (Artifact, error) {
	var named []Artifact
	for _, a := range all {
		if a.ID == id {
			return a, nil
		}
		if a.Name == id {
			named = append(named, a)
		}
	}
	switch len(named) {
	case 0:
		return Artifact{}, plugin.Errorf(plugin.CodeNotFound, "there is no artifact %.255q in session %s; 'mortise artifacts list --session %s' shows those there are", id, session, session)
	case 1:
		return named[0], nil
	}
	return Artifact{}, plugin.Errorf(plugin.CodeInvalidInput, "%d artifacts are called %s; the ids of the first two are %s and %s", len(named), id, named[0].ID, named[1].ID)
}

// Open returns the bytes of an artifact. They must be read to their end before
// they are believed: there it is known whether they are those that were
// registered.
func (s *Sessions) Open(ctx context.Context, tenant, session, id string) (io.ReadCloser, error) {
	a, err := s.Artifact(ctx, tenant, session, id)
	if err != nil {
		return nil, err
	}
	r, err := s.open(ctx, tenant, a)
	if err != nil {
		return nil, unreadable(a, err)
	}
	return &believed{r, a}, nil
}

// open returns the bytes of an artifact from where they are.
func (s *Sessions) open(ctx context.Context, tenant string, a Artifact) (io.ReadCloser, error) {
	if !a.inline {
		return s.Blobs.Open(ctx, a.SHA256)
	}
	data, err := s.Store.ArtifactData(ctx, tenant, a.Session, a.ID)
	if err != nil {
		return nil, err
	}
	if data == nil { // deleted since it was listed
		return nil, blob.ErrMissing
	}
	return blob.Checked(io.NopCloser(bytes.NewReader(data)), a.SHA256), nil
}

// check refuses what no artifact can be, and fills in what may be left out.
func (a *Add) check() error {
	refuse := func(format string, args ...any) error { return plugin.Errorf(plugin.CodeInvalidInput, format, args...) }
	switch {
	case a.Name == "" || a.Name == "." || a.Name == ".." || len(a.Name) > maxFileName || !printable(a.Name) || slices.Contains([]byte(a.Name), '/'):
		return refuse("%.300q is no name of an artifact; it is a file name of at most %d bytes, printable and without a directory", a.Name, maxFileName)
	case a.Type != "" && !isType(a.Type):
		return refuse("%.100q is no type of artifact; 'mortise artifacts types' shows those there are", a.Type)
	case a.ID != "" && !artifactID.MatchString(a.ID):
		return refuse("%.100q is no id of an artifact", a.ID)
	case len(a.SourceTool) > maxSource || len(a.SourceCall) > maxSource || !utf8.ValidString(a.SourceTool+a.SourceCall):
		return refuse("the source of artifact %s is longer than %d bytes, or no text", a.Name, maxSource)
	case len(a.Parents) > maxParents:
		return refuse("artifact %s has %d parents; there are at most %d", a.Name, len(a.Parents), maxParents)
	case len(a.Metadata) > maxMetadata:
		return plugin.Errorf(plugin.CodeInputTooLarge, "the metadata of artifact %s has %d bytes; at most %d are kept", a.Name, len(a.Metadata), maxMetadata)
	}
	for _, label := range a.Labels {
		if label == "" || len(label) > maxSource || !printable(label) {
			return refuse("%.100q is no label", label)
		}
	}
	if len(a.Metadata) == 0 {
		a.Metadata = json.RawMessage("{}")
	}
	form, err := canon.Form(a.Metadata)
	if err != nil || form[0] != '{' {
		return refuse("the metadata of artifact %s is no JSON object", a.Name)
	}
	said := jsontext.Value(slices.Clone(a.Metadata)) // its source reads it back, and finds its members and numbers as it wrote them
	if err := said.Compact(); err != nil {
		return err
	}
	a.Metadata = json.RawMessage(said)
	return nil
}

func artifactOf(row *artifactRow) Artifact {
	return Artifact{
		ID: row.ID, Session: row.SessionID, Type: row.Type, Name: row.Name, SHA256: row.SHA256, Size: row.Size, SourceTool: row.SourceTool,
		SourceCall: row.SourceCall, Parents: append([]string{}, row.Parents...), Labels: append([]string{}, row.Labels...),
		Metadata: json.RawMessage(row.Metadata), StorageURI: row.StorageURI, CreatedAt: row.CreatedAt, inline: row.Inline,
	}
}

func closed(session string) error {
	return plugin.Errorf(plugin.CodeInvalidInput, "session %s is closed and takes no artifacts; 'mortise sessions resume %s' opens it again", session, session)
}

// reading says which artifact could not be read or kept.
func reading(name string, err error) error {
	var coded *plugin.Error
	if errors.As(err, &coded) {
		return coded
	}
	return fmt.Errorf("keeping artifact %s: %w", name, err)
}

// unreadable says of which artifact the bytes cannot be had.
func unreadable(a Artifact, err error) error {
	switch {
	case errors.Is(err, blob.ErrMissing):
		return plugin.Errorf(plugin.CodeUnavailable, "the bytes of artifact %s (%s) are not where this host keeps them: %w; restore them from a backup, or look at 'blobs' in mortise.yaml", a.ID, a.Name, err)
	case errors.Is(err, blob.ErrDamaged):
		return plugin.Errorf(plugin.CodeInternal, "the bytes of artifact %s (%s) were changed since it was registered: %w; restore them from a backup", a.ID, a.Name, err)
	}
	return fmt.Errorf("reading artifact %s (%s): %w", a.ID, a.Name, err)
}

// A bounded reader fails where there is more than an artifact may have.
type bounded struct {
	io.Reader
	left int64
	name string
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, plugin.Errorf(plugin.CodeInputTooLarge, "%s is larger than an artifact may be; limits.artifact_bytes in mortise.yaml says how large", b.name)
	}
	return n, err
}

// A believed reader names its artifact where it cannot be read to the end.
type believed struct {
	io.ReadCloser
	artifact Artifact
}

func (b *believed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = unreadable(b.artifact, err)
	}
	return n, err
}
