package app

import (
	"context"
	"log/slog"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/llm"
)

// openModels returns what asks the models of the configuration.
func (a *App) openModels(log *slog.Logger) *llm.Dispatcher {
	c := a.Config.Models
	if len(c.Light)+len(c.Heavy) == 0 && c.Embedding == nil {
		return nil
	}
	a.live.over = llm.Transport()
	a.opened("connections to models", func() error { a.live.over.CloseIdleConnections(); return nil })
	return a.dispatcher(c, log)
}

func (a *App) dispatcher(c config.Models, log *slog.Logger) *llm.Dispatcher {
	o := setup.Models(c, a.live.over)
	o.Budgets, o.Scrubber, o.Now = bridge.Budgets{Of: a.own}, a.scrubber, a.own.Now
	o.Record = func(ctx context.Context, e *llm.Exchange) error { return a.recordModel(ctx, log, e) }
	return llm.New(o)
}

// recordModel puts an exchange into the ledger.
func (a *App) recordModel(ctx context.Context, log *slog.Logger, e *llm.Exchange) error {
	var bodies [][]byte
	if a.Config.Models.Keep && !e.Hashed {
		e.Record.Kept = true
		if bodies = append(bodies, e.Prompt); len(e.Answer) > 0 {
			bodies = append(bodies, e.Answer)
		}
	}
	err := a.Ledger.RecordModel(ctx, e.By.Tenant, e.By.Principal, &e.Record, a.own.Now(), bodies...)
	if err != nil {
		log.Error("a query to a model could not be recorded", "call_id", e.By.Call, "model", e.Record.Model, "cause", err.Error())
	}
	return err
}
