package store

import "context"

// OwnStore returns what the site's own tenant has of a store, which part is, and what is of
// the node besides: its end, its lease and the recovery of others.
func OwnStore(part, site Store) Store { return ownStore{part, site} }

type ownStore struct {
	Store
	site Store
}

// Recover implements [Store].
func (s ownStore) Recover(ctx context.Context, fn func(Tx, NodeRow) error) (int, error) {
	return s.site.Recover(ctx, fn)
}

// WriteLast implements [Store].
func (s ownStore) WriteLast(ctx context.Context, fn func(Tx) error) error {
	return s.site.WriteLast(ctx, fn)
}

// Held says what a store with a lease says of it.
func (s ownStore) Held() error {
	if st, leased := s.site.(interface{ Held() error }); leased {
		return st.Held()
	}
	return nil
}
