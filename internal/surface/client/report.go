package client

import (
	"context"
	"io"

	"github.com/mortise-dev/mortise/internal/host"
)

// Report makes the report of the session that is meant.
func Report(ctx context.Context, k Host, session string) (host.SessionReport, error) {
	from, err := reportSource(ctx, k, session)
	if err != nil {
		return host.SessionReport{}, err
	}
	return host.ReportOf(ctx, from)
}

// VerifyReport holds a report against the session that it names, or the one that is given, where
// one is.
func VerifyReport(ctx context.Context, k Host, session string, file []byte) (host.ReportCheck, error) {
	r, err := host.ReadReport(file)
	if err != nil {
		return host.ReportCheck{}, err
	}
	if session == "" {
		session = r.Session.ID
	}
	from, err := reportSource(ctx, k, session)
	if err != nil {
		return host.ReportCheck{}, err
	}
	return host.VerifyReport(ctx, from, file)
}

// reportSource is a host as reports ask it: what its caller may not see or read, none does.
func reportSource(ctx context.Context, k Host, session string) (from host.ReportSource, err error) {
	if from.Session, err = k.Sessions().Find(ctx, session); err != nil {
		return from, err
	}
	id := from.Session.ID
	from.Artifacts, err = k.Sessions().Artifacts(ctx, id)
	from.Open = func(ctx context.Context, artifact string) (io.ReadCloser, error) {
		return k.Sessions().OpenArtifact(ctx, id, artifact)
	}
	from.Newest = host.NewestCalls(k.Ledger().List)
	from.Find = k.Ledger().Find
	return from, err
}
