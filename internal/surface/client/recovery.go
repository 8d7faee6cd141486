package client

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Admin implements [Host].
func (r *remote) Admin() Admin { return remoteAdmin{r} }

type remoteAdmin struct{ *remote }

// Recovery implements [Admin].
func (r remoteAdmin) Recovery(ctx context.Context) (s host.RecoveryStatus, err error) {
	var got rest.Recovery
	if err = r.get(ctx, &got, nil, "recovery"); err != nil {
		return s, err
	}
	s = host.RecoveryStatus{Queued: got.Queued, Pending: got.Pending, Unknown: got.Unknown, Plans: got.Plans, Feeds: got.Feeds}
	if got.Recovery != nil {
		s.Recovery, err = recoveryOf(got.Recovery)
	}
	return s, err
}

// ConfirmRecovery implements [Admin].
func (r remoteAdmin) ConfirmRecovery(ctx context.Context, reason string) (host.Recovery, error) {
	var why rest.RecoveryWhy
	if err := r.post(ctx, map[string]string{"reason": reason}, &why, "recovery:confirm"); err != nil {
		return host.Recovery{}, err
	}
	ended, err := recoveryOf(&why)
	if err != nil {
		return host.Recovery{}, err
	}
	return *ended, nil
}

func recoveryOf(why *rest.RecoveryWhy) (*host.Recovery, error) {
	r := &host.Recovery{Since: why.Since, Why: why.Why}
	if len(why.Anchors) == 0 {
		return r, nil
	}
	return r, json.Unmarshal(why.Anchors, &r.Anchors)
}

// MayBackup implements [Admin]. A backup is made where the data directory is.
func (r remoteAdmin) MayBackup(context.Context) error {
	return plugin.Errorf(plugin.CodeInvalidInput, "a backup is made where the data directory is")
}
