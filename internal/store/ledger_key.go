package store

import "github.com/mortise-dev/mortise/internal/store/chain"

// What the store's rows are signed with, and the heads of its chains; see package chain.
type (
	Key      = chain.Key
	Weight   = chain.Weight
	ChainRow = chain.Head
	Anchor   = chain.Anchor
)

// KeyFile is the name of the file that holds the [Key], beside the database.
const KeyFile = chain.KeyFile

// ReadKey is [chain.ReadKey].
func ReadKey(dir string) (*Key, error) { return chain.ReadKey(dir) }

// ReadAnchors is [chain.ReadAnchors].
func ReadAnchors(dir string) ([]*Anchor, error) { return chain.ReadAnchors(dir) }

// SyncDir is [chain.SyncDir].
func SyncDir(dir string) error { return chain.SyncDir(dir) }
