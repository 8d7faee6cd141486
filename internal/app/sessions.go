package app

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/blob"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/service/session"
)

// openSessions opens the sessions of a host, and where their artifacts are.
func (a *App) openSessions(ctx context.Context, scrubber *secret.Scrubber) (*session.Sessions, error) {
	at := a.Config.Blobs
	if at == "" {
		at = a.dir("blobs")
	}
	blobs, err := blob.Open(ctx, at, a.dir("blobs"))
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("the place of artifacts cannot be used: %w; 'blobs' in %s says where it is", err, config.FileName)}
	}
	a.opened("blobs", blobs.Close)
	o := session.Options{
		Store: a.own, Now: a.own.Now, Blobs: blobs, Dir: a.dir("sessions"), MaxArtifact: int64(a.Config.Limits.ArtifactBytes),
		MaxSession: int64(a.Config.Limits.SessionArtifactBytes), MaxTenant: int64(a.Config.Limits.TenantArtifactBytes), MaxOpen: a.Config.Limits.PrincipalSessions, By: principal.Name(a.Principal), Sift: scrubber.Reader,
		Walled: func() bool { return a.Sandbox != nil && a.Sandbox.Report().Level == sandbox.Full },
	}
	if dir, ok := blobs.(*blob.Dir); ok && a.Config.Database != "" {
		o.Place = dir.ID // other nodes on that database may be on other machines
	}
	return session.New(o), nil
}
