package app

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/host/setup"
)

// CatchUp takes up what other processes changed since this host was opened: the
// plugins that there are, and the policies. A host that stays calls it where what
// it does must be what a new one would do.
func (a *App) CatchUp(ctx context.Context) error {
	if err := a.Registry.Refresh(ctx); err != nil {
		return err
	}
	if err := a.Policy.Reload(); err != nil {
		return &setup.Error{Err: fmt.Errorf("the policies cannot be used: %w", err)}
	}
	return nil
}
