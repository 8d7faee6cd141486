package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/store/chain"
)

// MoveAnchors moves the anchors in dir forward to where the chains end. It
// leaves one alone that is further on, or that its chain does not pass through:
// that is evidence, and verifying will find it. For what it cannot do the last
// anchors hold just as well, for less of the chains.
func MoveAnchors(ctx context.Context, r Reader, dir string, key *chain.Key) error {
	// Another process that has this directory may be doing the same.
	lock, err := filelock.Acquire(filepath.Join(dir, chain.AnchorFile+".lock"))
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

func moveAnchor(ctx context.Context, r Reader, dir string, key *chain.Key, head chain.Head) error {
	old, err := chain.ReadAnchorOf(dir, head.ID)
	if err != nil {
		return err
	}
	if !key.Signed(head) {
		return chain.ErrTampered
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
	return chain.WriteAnchor(dir, key.Anchor(head))
}

// Missed returns the anchors in dir that the chains do not pass through: of a
// database that is an older copy, or lost its end. An anchor that does not bear
// the key's signature says nothing; verifying finds it.
func Missed(ctx context.Context, r Reader, dir string) (missed []chain.Anchor, err error) {
	anchors, err := chain.ReadAnchors(dir) // before the database
	if err != nil || len(anchors) == 0 {
		return nil, err
	}
	key, err := chain.ReadKey(dir)
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
	lock, err := filelock.Acquire(filepath.Join(dir, chain.AnchorFile+".lock"))
	if err != nil {
		return err
	}
	defer lock.Release()
	missed, err := Missed(ctx, r, dir)
	if err != nil || len(missed) == 0 {
		return err
	}
	key, err := chain.ReadKey(dir)
	if err != nil {
		return err
	}
	heads, err := r.Chains(ctx)
	if err != nil {
		return err
	}
	for _, a := range missed {
		i := slices.IndexFunc(heads, func(h chain.Head) bool { return h.ID == a.Chain })
		switch {
		case i < 0:
			err = errors.Join(err, os.Remove(filepath.Join(dir, chain.FileOfAnchor(a.Chain))))
		case !key.Signed(heads[i]):
			err = errors.Join(err, chain.ErrTampered)
		default:
			err = errors.Join(err, chain.WriteAnchor(dir, key.Anchor(heads[i])))
		}
	}
	return err
}
