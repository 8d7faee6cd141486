package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
)

// AnchorFile is the name of the file that holds the [Anchor] of chain 1, beside
// the key. That of chain 2 is in ledger-2.anchor, and so on.
const AnchorFile = "ledger.anchor"

// An Anchor is a head of the chain remembered outside the database. A database
// whose chain does not pass through it was emptied, or is an older copy.
type Anchor struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Head  string `json:"head"`
	MAC   string `json:"mac"`
}

// Anchor returns row as an anchor. Its MAC differs from the row's, so an attacker with
// an old copy of the database cannot derive the matching anchor from it.
func (k *Key) Anchor(row ChainRow) *Anchor {
	return &Anchor{Chain: row.ID, Seq: row.Seq, Head: row.Head, MAC: k.mac(anchorDomain, row.ID, row.Seq, row.Head)}
}

// Anchored reports whether a's MAC is this key's.
func (k *Key) Anchored(a *Anchor) bool {
	return hmac.Equal([]byte(a.MAC), []byte(k.mac(anchorDomain, a.Chain, a.Seq, a.Head)))
}

func anchorFile(chain int64) string {
	if chain == 1 {
		return AnchorFile
	}
	return fmt.Sprintf("ledger-%d.anchor", chain)
}

// ReadAnchor reads the anchor of chain 1 in dir; nil without an error where
// there is none.
func ReadAnchor(dir string) (*Anchor, error) { return readAnchor(filepath.Join(dir, AnchorFile)) }

// ReadAnchors reads all anchors in dir, in the order of their chains. To verify, read the anchors first and
// the database after them.
func ReadAnchors(dir string) (anchors []*Anchor, err error) {
	names, err := fs.Glob(os.DirFS(dir), "ledger*.anchor")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		a, err := readAnchor(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if a != nil {
			anchors = append(anchors, a)
		}
	}
	slices.SortFunc(anchors, func(a, b *Anchor) int { return cmp.Compare(a.Chain, b.Chain) })
	return anchors, nil
}

func readAnchor(path string) (*Anchor, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var a Anchor
	if err := json.Unmarshal(data, &a, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s is not an anchor: %w", path, err)
	}
	return &a, nil
}

// WriteAnchor replaces the anchor of a's chain in dir with a, atomically.
func WriteAnchor(dir string, a *Anchor) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// Synced before it is renamed: an anchor that a power cut left empty would
	// accuse an honest database.
	name := anchorFile(a.Chain)
	temp, err := writeTemp(dir, name, append(data, '\n'))
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}

// MoveAnchors moves the anchors in dir forward to where the chains end. It
// leaves one alone that is further on, or that its chain does not pass through:
// that is evidence, and verifying will find it. For what it cannot do the last
// anchors hold just as well, for less of the chains.
func MoveAnchors(ctx context.Context, r Reader, dir string, key *Key) error {
	// Another process that has this directory may be doing the same.
	lock, err := AcquireLock(filepath.Join(dir, AnchorFile+".lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	heads, err := r.Chains(ctx)
	if err != nil {
		return err
	}
	for _, head := range heads {
		err = errors.Join(err, moveAnchor(ctx, r, dir, key, head))
	}
	return err
}

func moveAnchor(ctx context.Context, r Reader, dir string, key *Key, head ChainRow) error {
	old, err := readAnchor(filepath.Join(dir, anchorFile(head.ID)))
	if err != nil {
		return err
	}
	if !key.Signed(head) {
		return ErrTampered
	}
	if old != nil {
		if old.Seq >= head.Seq || old.Chain != head.ID || !key.Anchored(old) {
			return nil
		}
		e, err := r.Entry(ctx, old.Chain, old.Seq)
		if err != nil || e == nil || e.Hash != old.Head {
			return err
		}
	}
	return WriteAnchor(dir, key.Anchor(head))
}

// Missed returns the anchors in dir that the chains do not pass through: of a
// database that is an older copy, or lost its end. An anchor that does not bear
// the key's signature says nothing; verifying finds it.
func Missed(ctx context.Context, r Reader, dir string) (missed []Anchor, err error) {
	anchors, err := ReadAnchors(dir) // before the database
	if err != nil || len(anchors) == 0 {
		return nil, err
	}
	key, err := ReadKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, a := range anchors {
		if !key.Anchored(a) {
			continue
		}
		e, err := r.Entry(ctx, a.Chain, a.Seq)
		if err != nil {
			return nil, err
		}
		if e == nil || e.Hash != a.Head {
			missed = append(missed, *a)
		}
	}
	return missed, nil
}

// ReplaceAnchors puts the heads of the chains, as they are now, in the place of
// anchors that they do not pass through. What those were should be on record.
func ReplaceAnchors(ctx context.Context, r Reader, dir string) error {
	lock, err := AcquireLock(filepath.Join(dir, AnchorFile+".lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	missed, err := Missed(ctx, r, dir)
	if err != nil || len(missed) == 0 {
		return err
	}
	key, err := ReadKey(dir)
	if err != nil {
		return err
	}
	heads, err := r.Chains(ctx)
	if err != nil {
		return err
	}
	for _, a := range missed {
		i := slices.IndexFunc(heads, func(h ChainRow) bool { return h.ID == a.Chain })
		switch {
		case i < 0:
			err = errors.Join(err, os.Remove(filepath.Join(dir, anchorFile(a.Chain))))
		case !key.Signed(heads[i]):
			err = errors.Join(err, ErrTampered)
		default:
			err = errors.Join(err, WriteAnchor(dir, key.Anchor(heads[i])))
		}
	}
	return err
}
