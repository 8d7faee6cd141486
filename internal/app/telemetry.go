package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/telemetry"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host/setup"
)

// openTelemetry opens what the host tells of itself, where it stays and is asked to: by its
// configuration, or by the variables of OpenTelemetry.
func (a *App) openTelemetry(ctx context.Context, stays bool) (err error) {
	if !stays {
		return nil
	}
	conf := a.Config.Telemetry
	if conf.Traces == "" && telemetry.Asked() {
		conf.Traces = telemetry.Environment
	}
	a.Telemetry, err = telemetry.Open(ctx, telemetry.Options{
		Traces: conf.Traces, Sample: conf.Sample, Metrics: conf.Metrics, Service: "mortise", Version: version.Host, Log: a.log,
		Site: a.Config.Tenant, Waiting: func(ctx context.Context) (map[string]map[string]int, error) {
			return a.guard.Waiting(ctx, a.others.Served)
		}, Unwritten: func() int { return a.Ledger.Unwritten() },
	})
	if err != nil {
		return &setup.Error{Err: err}
	}
	a.opened("telemetry", a.Telemetry.Close)
	return nil
}

// watched has the telemetry told of calls and approvals.
func (a *App) watched() {
	if a.Telemetry == nil {
		return
	}
	a.Kernel.Watch = a.Telemetry.Call
	a.Approvals.Closed = func(ctx context.Context, row *approval.Row) {
		a.Telemetry.ApprovalDecided(ctx, row.Tenant, string(row.State), a.own.Now().Sub(row.CreatedAt))
	}
}
