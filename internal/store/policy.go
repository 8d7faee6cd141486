package store

import "time"

// A PolicyRow is a text of policies that is kept in the store.
type PolicyRow struct {
	Tenant string
	Name   string
	Text   string
	By     string // who put it there
	At     time.Time
}
