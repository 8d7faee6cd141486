// Package session keeps investigations and what is registered in them.
//
// An artifact is a file that never changes again: what it is and where it came
// from is a row of the store, which has its bytes too where they are few. Others
// are kept under their hash, once for all who have the same. Registering one,
// and whatever else changes a session, is an entry of the ledger in the same
// transaction.
//
// Processes do not read artifacts where they are kept but in a [View], where
// they have the names they came with.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/plugin"
)

// Options say what sessions are kept in.
type Options struct {
	Store       Store
	Blobs       blob.Store
	Dir         string           // of views
	MaxArtifact int64            // bytes of one artifact; 8 GiB where it is 0
	MaxSession  int64            // bytes of the artifacts of one session; no limit where it is 0
	MaxTenant   int64            // bytes of the artifacts of all sessions of one tenant; likewise
	MaxOpen     int              // open sessions of one principal; any number where it is 0
	MaxInline   int              // bytes of one that is kept in the store itself; 64 KiB where it is 0, none where it is negative
	Now         func() time.Time // time.Now where it is nil

	// Sift returns a reader that fails where what it reads may not be kept as it
	// is, outside the store; nil lets everything be.
	Sift func(r io.Reader, name string) io.Reader

	// Walled reports whether readers of a view are kept from writing to it by more than the
	// mode of its files; never if it is nil. The files look writable then: a copy that
	// takes the mode along can be worked on.
	Walled func() bool

	// By is the default principal; see [Sessions.As].
	By string

	// Place names the only place where blobs are, if other nodes on the same
	// store cannot reach it; nil where all can. A node with another one cannot
	// add anything.
	Place func() (string, error)
}

// MaxArtifact is the size of an artifact that options leave open.
const MaxArtifact = 8 << 30

// MaxInline is up to which size artifacts are kept in the store itself, where
// options leave it open. They are safe with the commit of their row; elsewhere,
// bytes and name are two more things to wait for the disk for.
const MaxInline = 64 << 10

// Bounds of what a session holds.
const (
	maxArtifacts = 10_000
	maxName      = 200 // characters of a session's name
)

// Sessions are the investigations of all tenants. They are safe for concurrent
// use, by several processes too.
type Sessions struct {
	Options
	recent *recent
	quota  *quota
}

// New returns the sessions in a store.
func New(o Options) *Sessions {
	if o.MaxArtifact == 0 {
		o.MaxArtifact = MaxArtifact
	}
	if o.MaxInline == 0 {
		o.MaxInline = MaxInline
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sessions{o, &recent{}, &quota{uses: map[useKey]*use{}}}
}

// As returns the same sessions for another principal, whom the ledger will name.
func (s *Sessions) As(by string) *Sessions {
	o := s.Options
	o.By = by
	return &Sessions{o, s.recent, s.quota}
}

// A Session is one investigation.
type Session struct {
	ID        string    `json:"id"` // sess_ and 12 hexadecimal digits
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`  // investigation
	Owner     string    `json:"owner"` // the principal that began it; "" where that is not known
	Pillar    string    `json:"pillar"`
	State     string    `json:"state"`     // open or closed
	Labels    []string  `json:"labels"`    // those of all its artifacts
	Artifacts int       `json:"artifacts"` // how many it has
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Pillars are those that tools usually stand in; a tree may have others.
var Pillars = []string{"network_forensics", "cloud_investigation", "log_analysis", "risk_assessment", "threat_modeling"}

// An Open says what a new session is to be.
type Open struct {
	Name   string // up to 200 printable characters
	Pillar string // "" for none yet
	Kind   string // what sort of session; an investigation where it is empty
}

// The kinds of sessions.
const (
	Investigation = "investigation"
	Conversation  = "conversation" // with an agent
)

// Create begins a session.
func (s *Sessions) Create(ctx context.Context, tenant string, o Open) (Session, error) {
	if utf8.RuneCountInString(o.Name) > maxName || !printable(o.Name) {
		return Session{}, plugin.Errorf(plugin.CodeInvalidInput, "a session's name is at most %d printable characters", maxName)
	}
	if err := checkPillar(o.Pillar); o.Pillar != "" && err != nil {
		return Session{}, err
	}
	now := s.now()
	row := sessionRow{
		Tenant: tenant, Name: o.Name, Kind: cmp.Or(o.Kind, Investigation), Owner: s.By, Pillar: o.Pillar, State: sessionOpen, Labels: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	err := s.write(ctx, func(tx Tx) (err error) {
		row.ID = ""
		if s.MaxOpen > 0 {
			n, err := tx.Owned(ctx, ownedSessions, tenant, s.MaxOpen, row.Owner)
			if err = errors.Join(err, ownedSessions.Most(n, s.MaxOpen, "limits.principal_sessions")); err != nil {
				return err
			}
		}
		row.ID, err = freshID("sess_", 6, func(id string) (bool, error) {
			had, err := tx.Session(ctx, tenant, id)
			return had != nil, err
		})
		if err != nil {
			return err
		}
		if err := tx.InsertSession(row); err != nil {
			return err
		}
		return s.note(tx, tenant, plugin.EntrySessionCreated, row.ID, map[string]any{"session": row.ID, "name": row.Name, "pillar": row.Pillar})
	})
	return sessionOf(&row), err
}

// Get returns a session; its id may be cut short. The error's code is not_found
// if there is none.
func (s *Sessions) Get(ctx context.Context, tenant, id string) (Session, error) {
	row, err := find(ctx, s.Store, tenant, id)
	if err != nil {
		return Session{}, err
	}
	return sessionOf(row), nil
}

// List returns all sessions of a tenant, newest first.
func (s *Sessions) List(ctx context.Context, tenant string) ([]Session, error) {
	rows, err := s.Store.Sessions(ctx, sessionFilter{Tenant: tenant})
	if err != nil {
		return nil, err
	}
	all := make([]Session, len(rows))
	for i := range rows {
		all[i] = sessionOf(&rows[i])
	}
	return all, nil
}

// Choose sets the pillar.
func (s *Sessions) Choose(ctx context.Context, tenant, id, pillar string) error {
	if err := checkPillar(pillar); err != nil {
		return err
	}
	return s.write(ctx, func(tx Tx) error {
		row, err := find(ctx, tx, tenant, id)
		if err != nil || row.Pillar == pillar {
			return err
		}
		if _, err := tx.SetSessionPillar(tenant, row.ID, pillar, s.now()); err != nil {
			return err
		}
		return s.note(tx, tenant, plugin.EntrySessionPillar, row.ID, map[string]any{"session": row.ID, "pillar": pillar, "was": row.Pillar})
	})
}

// Close lets nothing more be added to a session. It can be read, and opened
// again with Resume. Closing a closed one does nothing.
func (s *Sessions) Close(ctx context.Context, tenant, id string) error {
	return s.move(ctx, tenant, id, sessionOpen, sessionClosed, plugin.EntrySessionClosed)
}

// Resume opens a closed session again.
func (s *Sessions) Resume(ctx context.Context, tenant, id string) error {
	return s.move(ctx, tenant, id, sessionClosed, sessionOpen, plugin.EntrySessionResumed)
}

func (s *Sessions) move(ctx context.Context, tenant, id string, from, to sessionState, kind plugin.EntryKind) error {
	return s.write(ctx, func(tx Tx) error {
		row, err := find(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		won, err := tx.SetSessionState(tenant, row.ID, from, to, s.now())
		if err != nil || !won {
			return err
		}
		return s.note(tx, tenant, kind, row.ID, map[string]any{"session": row.ID, "artifacts": row.Artifacts})
	})
}

// Delete deletes a session with its artifacts, and their bytes unless another session
// has the same. The ledger entries about it stay.
func (s *Sessions) Delete(ctx context.Context, tenant, id string) error {
	var hashes []string
	deleted := ""
	err := s.write(ctx, func(tx Tx) error {
		deleted = ""
		row, err := find(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		var found bool
		if hashes, found, err = tx.DeleteSession(tenant, row.ID); err != nil || !found {
			return err
		}
		deleted = row.ID
		return s.note(tx, tenant, plugin.EntrySessionDeleted, row.ID, map[string]any{"session": row.ID, "artifacts": row.Artifacts})
	})
	if err != nil {
		return err
	}
	if deleted != "" {
		id = deleted // which may have been given in part
	}
	s.quota.forget(tenant, id)
	if err := rmtree.Remove(s.viewDir(tenant, id)); err != nil {
		return plugin.Errorf(plugin.CodeInternal, "session %s is deleted, but not its view: %w", id, err)
	}
	for _, hash := range hashes {
		if err := s.forget(ctx, hash); err != nil {
			return plugin.Errorf(plugin.CodeInternal, "session %s is deleted, but not the bytes of all its artifacts: %w", id, err)
		}
	}
	return nil
}

// Dispose removes what is left of sessions that were deleted in the store: their views, and
// bytes that no other artifact has.
func (s *Sessions) Dispose(ctx context.Context, tenant string, sessions, hashes []string) error {
	var errs []error
	for _, id := range sessions {
		s.quota.forget(tenant, id)
		errs = append(errs, rmtree.Remove(s.viewDir(tenant, id)))
	}
	for _, hash := range hashes {
		errs = append(errs, s.forget(ctx, hash))
	}
	return errors.Join(errs...)
}

// forget deletes bytes that no artifact has.
func (s *Sessions) forget(ctx context.Context, hash string) error {
	needed := func() (bool, error) { return s.Store.Registered(ctx, hash) }
	if yes, err := needed(); yes || err != nil {
		return err
	}
	return s.Blobs.Delete(ctx, hash, needed)
}

// shortest is how many digits of an id are enough.
const shortest = 4

// Whole reports whether an id is written out, and can mean one session only.
func Whole(given string) bool {
	return len(given) == len("sess_")+12 && strings.HasPrefix(given, "sess_")
}

// Missing says that there is no such session, or none that the caller may know of.
func Missing(given string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no session %.100q; 'mortise sessions list' shows those there are", given)
}

// find returns the one session whose id is given, or begins so; sess_ may be
// left out.
func find(ctx context.Context, r reader, tenant, given string) (*sessionRow, error) {
	row, err := r.Session(ctx, tenant, given)
	if err != nil || row != nil {
		return row, err
	}
	none := Missing(given)
	digits := strings.TrimPrefix(given, "sess_")
	if len(digits) < shortest || len(digits) > 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return nil, none
	}
	rows, err := r.Sessions(ctx, sessionFilter{Tenant: tenant, Prefix: "sess_" + digits, Limit: 2})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, none
	case len(rows) > 1:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s may mean session %s or %s; write more of the id", given, rows[0].ID, rows[1].ID)
	}
	return &rows[0], nil
}

// write is a write to the store by a node whose blobs others can reach, or that
// has them all.
func (s *Sessions) write(ctx context.Context, fn func(Tx) error) error {
	place := ""
	if s.Place != nil {
		var err error
		if place, err = s.Place(); err != nil {
			return err
		}
	}
	return s.Store.Write(ctx, func(tx Tx) error {
		if place != "" {
			switch holder, err := tx.Claim("blobs", place); {
			case err != nil:
				return err
			case holder != place:
				return plugin.Errorf(plugin.CodeUnavailable,
					"artifacts are kept in a directory of another node on this database; set 'blobs' in mortise.yaml of all nodes to a bucket, such as s3://NAME")
			}
		}
		return fn(tx)
	})
}

// note appends an entry.
func (s *Sessions) note(tx Tx, tenant string, kind plugin.EntryKind, subject string, body map[string]any) error {
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: s.now(), Tenant: tenant, Kind: kind, Subject: subject, Principal: s.By, Body: []byte(raw)})
	return nil
}

func (s *Sessions) now() time.Time { return s.Now().UTC().Truncate(time.Microsecond) }

// freshID returns an id of so many random bytes that is not taken.
func freshID(prefix string, bytes int, taken func(id string) (bool, error)) (string, error) {
	for {
		random := make([]byte, bytes)
		rand.Read(random)
		id := prefix + hex.EncodeToString(random)
		if yes, err := taken(id); !yes || err != nil {
			return id, err
		}
	}
}

func sessionOf(row *sessionRow) Session {
	return Session{
		ID: row.ID, Name: row.Name, Kind: row.Kind, Owner: row.Owner, Pillar: row.Pillar, State: string(row.State), Labels: append([]string{}, row.Labels...),
		Artifacts: int(row.Artifacts), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
}

var pillarName = pattern.New(`^[a-z][a-z0-9_]{0,63}$`)

func checkPillar(pillar string) error {
	if !pillarName.MatchString(pillar) {
		return plugin.Errorf(plugin.CodeInvalidInput, "%.100q is no pillar; the usual ones are %s", pillar, strings.Join(Pillars, ", "))
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
