package store

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// AnchorFile is the name of the file that holds the [Anchor], beside the key.
const AnchorFile = "ledger.anchor"

// An Anchor is a head of the chain remembered outside the database. A database
// whose chain does not pass through it was emptied, or is an older copy.
type Anchor struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Head  string `json:"head"`
	MAC   string `json:"mac"`
}

// Anchor returns row as an anchor. Its MAC is not the row's: somebody who has
// an old copy of the database does not thereby have the anchor to go with it.
func (k *Key) Anchor(row ChainRow) *Anchor {
	return &Anchor{Chain: row.ID, Seq: row.Seq, Head: row.Head, MAC: k.mac(anchorDomain, row.ID, row.Seq, row.Head)}
}

// Anchored reports whether a's MAC is this key's.
func (k *Key) Anchored(a *Anchor) bool {
	return hmac.Equal([]byte(a.MAC), []byte(k.mac(anchorDomain, a.Chain, a.Seq, a.Head)))
}

// ReadAnchor reads the anchor in dir; nil without an error where there is none.
// To verify, read the anchor first and the database after it.
func ReadAnchor(dir string) (*Anchor, error) {
	path := filepath.Join(dir, AnchorFile)
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

// WriteAnchor replaces the anchor in dir with a, atomically.
func WriteAnchor(dir string, a *Anchor) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// Synced before it is renamed: an anchor that a power cut left empty would
	// accuse an honest database.
	temp, err := writeTemp(dir, AnchorFile, append(data, '\n'))
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, AnchorFile)); err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}
