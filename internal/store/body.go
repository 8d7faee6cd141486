package store

import "time"

// A BodyRow is a payload kept under the hash of its bytes, so that rows and
// entries can name it and outlive it.
type BodyRow struct {
	Tenant    string
	Hash      string // sha256:<hex>
	Data      []byte
	ExpiresAt time.Time // zero for never
}
