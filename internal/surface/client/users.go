package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Users implements [Host].
func (r *remote) Users() Users { return remoteUsers{r} }

type remoteUsers struct{ *remote }

func userOf(u rest.User) host.User {
	return host.User{
		ID: u.ID, Principal: u.Principal, By: u.By, CreatedAt: u.CreatedAt, DisabledAt: u.DisabledAt, InvitedUntil: u.InvitedUntil,
		Identities: each(u.Identities, func(i rest.UserIdentity) host.UserIdentity { return host.UserIdentity(i) }),
	}
}

// List implements [Users].
func (r remoteUsers) List(ctx context.Context) ([]host.User, error) {
	var all rest.Users
	err := r.get(ctx, &all, nil, "users")
	return each(all.Users, userOf), err
}

// Show implements [Users].
func (r remoteUsers) Show(ctx context.Context, name string) (host.User, error) {
	var u rest.User
	err := r.get(ctx, &u, nil, "users", name)
	return userOf(u), err
}

// Create implements [Users]. The user of the operating system is named on the socket alone.
func (r remoteUsers) Create(ctx context.Context, name, osUser string) (host.User, error) {
	return r.changed(ctx, struct {
		Principal string `json:"principal"`
		OSUser    string `json:"os_user,omitzero"`
	}{name, osUser}, "users")
}

// Disable implements [Users].
func (r remoteUsers) Disable(ctx context.Context, name string) (host.User, error) {
	return r.changed(ctx, nil, "users", name+":disable")
}

// Enable implements [Users].
func (r remoteUsers) Enable(ctx context.Context, name string) (host.User, error) {
	return r.changed(ctx, nil, "users", name+":enable")
}

// Unlink implements [Users].
func (r remoteUsers) Unlink(ctx context.Context, name, identity string) (host.User, error) {
	return r.changed(ctx, map[string]string{"identity": identity}, "users", name+":unlink")
}

// Invite implements [Users].
func (r remoteUsers) Invite(ctx context.Context, name string) (host.User, string, error) {
	var made rest.Invited
	err := r.post(ctx, nil, &made, "users", name+":invite")
	return userOf(made.User), made.Secret, err
}

func (r remoteUsers) changed(ctx context.Context, body any, path ...string) (host.User, error) {
	var u rest.User
	err := r.post(ctx, body, &u, path...)
	return userOf(u), err
}
