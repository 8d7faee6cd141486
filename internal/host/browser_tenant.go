package host

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// whither returns what signs in people of the tenant that an identity, or an invitation, is
// of; the site's own where it is of none, which refuses it.
func (s SignIns) whither(ctx context.Context, in SignIn, asker string) (SignIns, error) {
	names, err := s.home.served(ctx)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		users, err := s.g.Store.Users(everywhere(ctx), name)
		if err != nil {
			return s, err
		}
		if in.Invitation != "" && invited(users, in.Invitation, s.g.Store.Now()) != nil || in.Invitation == "" && linkedTo(users, asker) {
			home, err := s.home.of(ctx, name)
			if err != nil {
				return s, err
			}
			return home.SignIns(), nil
		}
	}
	return s, nil
}

// linkedTo reports whether an identity signs in one of some users.
func linkedTo(users []userRow, asker string) bool {
	for i := range users {
		for _, id := range users[i].Identities {
			if id.Asker == asker && id.UnlinkedAt.IsZero() && users[i].DisabledAt.IsZero() {
				return true
			}
		}
	}
	return false
}

// nowhereElse refuses an identity that is, or was, of a user of another tenant: an account
// signs in to one tenant, so that no invitation takes it away from where it belongs.
func (s SignIns) nowhereElse(ctx context.Context, tx Tx, asker string) error {
	names, err := s.home.everyone(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == s.g.Tenant {
			continue
		}
		users, err := tx.Users(everywhere(ctx), name)
		if err != nil {
			return err
		}
		if ownerOf(users, asker) != nil {
			return plugin.Errorf(plugin.CodeUnauthenticated, "that identity is, or was, of another user")
		}
	}
	return nil
}

// everyone returns the names of all tenants that there are, disabled ones too.
func (h *Host) everyone(ctx context.Context, r Reader) ([]string, error) {
	rows, err := r.Tenants(everywhere(ctx))
	names := []string{h.parts.Site}
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return names, err
}
