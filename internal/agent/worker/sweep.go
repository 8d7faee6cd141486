package worker

import (
	"context"
	"time"
)

// sweep looks for what is due of one kind: at once, from time to time, and after a
// death.
func (p *pool) sweep(ctx context.Context, l *lane) {
	var trouble trouble
	for {
		err := p.sweepOnce(ctx, l)
		trouble.tell(ctx, p.opts.Log, "looking for what is due of the kind "+l.sweeper.Kind(), err)
		if fatal(err) {
			p.fail(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.nudged:
		case <-time.After(p.opts.SweepEvery):
		}
	}
}

// sweepOnce begins what is due, as slots become free. Where none does for the time
// between two sweeps it looks again: more may be due to look than to do.
func (p *pool) sweepOnce(ctx context.Context, l *lane) error {
	items, err := l.sweeper.Due(ctx, batch+p.awake())
	if err != nil {
		return err
	}
	for _, item := range items {
		if ctx.Err() != nil {
			return nil
		}
		if p.rests(item) {
			continue
		}
		if !p.begin(ctx, l, item, time.After(p.opts.SweepEvery)) && ctx.Err() == nil {
			l.nudge()
			return nil
		}
	}
	return nil
}

// awake lets those items be due again that rested long enough, and returns how
// many still rest.
func (p *pool) awake() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for item, until := range p.tired {
		if time.Now().After(until) {
			delete(p.tired, item)
		}
	}
	return len(p.tired)
}

func (p *pool) rests(item Item) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, rests := p.tired[item]
	return rests
}

// recover settles what dead nodes left. What they were doing may be due then.
func (p *pool) recover(ctx context.Context) {
	var trouble trouble
	for {
		n, err := p.opts.Recover(ctx)
		trouble.tell(ctx, p.opts.Log, "looking for nodes that died", err)
		if fatal(err) {
			p.fail(err)
		}
		if n > 0 {
			p.opts.Log.Warn("the books of nodes that ended uncleanly were closed", "nodes", n)
			for _, l := range p.lanes {
				l.nudge()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.opts.RecoverEvery):
		}
	}
}
