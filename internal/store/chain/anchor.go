package chain

import (
	"cmp"
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
func (k *Key) Anchor(row Head) *Anchor {
	return &Anchor{Chain: row.ID, Seq: row.Seq, Head: row.Head, MAC: k.mac(anchorDomain, row.ID, row.Seq, row.Head)}
}

// Anchored reports whether a's MAC is this key's.
func (k *Key) Anchored(a *Anchor) bool {
	return hmac.Equal([]byte(a.MAC), []byte(k.mac(anchorDomain, a.Chain, a.Seq, a.Head)))
}

// FileOfAnchor returns the name of the file of a chain's anchor.
func FileOfAnchor(chain int64) string {
	if chain == 1 {
		return AnchorFile
	}
	return fmt.Sprintf("ledger-%d.anchor", chain)
}

// ReadAnchor reads the anchor of chain 1 in dir; nil without an error where
// there is none.
func ReadAnchor(dir string) (*Anchor, error) { return ReadAnchorOf(dir, 1) }

// ReadAnchorOf is ReadAnchor of another chain.
func ReadAnchorOf(dir string, chain int64) (*Anchor, error) {
	return readAnchor(filepath.Join(dir, FileOfAnchor(chain)))
}

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

// readAnchor reads the anchor at path.
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
	name := FileOfAnchor(a.Chain)
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
