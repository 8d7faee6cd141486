package store

import (
	"context"
	"time"
)

// A PolicyRow is a text of policies that is kept in the store.
type PolicyRow struct {
	Tenant string
	Name   string
	Text   string
	By     string // who put it there
	At     time.Time
}

// A PolicyReader reads policies.
type PolicyReader interface {
	// Policies returns the policies that are kept for a tenant, by name.
	Policies(ctx context.Context, tenant string) ([]PolicyRow, error)
}

// A PolicyWriter is what a transaction may do to them.
type PolicyWriter interface {
	// PutPolicy adds a text of policies or replaces it.
	PutPolicy(row PolicyRow) error
	// DeletePolicy reports whether there was such a text to delete.
	DeletePolicy(tenant, name string) (found bool, err error)
}
