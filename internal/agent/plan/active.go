package plan

import (
	"context"
)

// begin notes that this engine runs a plan, and reports false if it does already.
func (e *Engine) begin(row *Row, cancel context.CancelCauseFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := row.Tenant + "\x00" + row.ID
	if e.active[key] != nil {
		return false
	}
	e.active[key] = cancel
	return true
}

// runs reports whether this engine runs a plan.
func (e *Engine) runs(row *Row) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[row.Tenant+"\x00"+row.ID] != nil
}

func (e *Engine) end(row *Row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, row.Tenant+"\x00"+row.ID)
}

// stop ends a plan's run in this process, if there is one.
func (e *Engine) stop(row *Row, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.active[row.Tenant+"\x00"+row.ID]; cancel != nil {
		cancel(why)
	}
}
