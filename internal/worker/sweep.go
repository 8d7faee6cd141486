package worker

import (
	"context"
	"time"
)

// sweep looks for what is due: at once, from time to time, and after a death.
func (p *pool) sweep(ctx context.Context) {
	var trouble trouble
	for {
		var err error
		for _, s := range p.opts.Sweepers {
			if e := p.sweepOne(ctx, s); e != nil {
				err = e
			}
		}
		trouble.tell(ctx, p.opts.Log, "looking for what is due", err)
		if fatal(err) {
			p.fail(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.nudged:
		case <-time.After(p.opts.SweepEvery):
		}
	}
}

// sweepOne begins what is due of one kind, as slots become free.
func (p *pool) sweepOne(ctx context.Context, s Sweeper) error {
	items, err := s.Due(ctx, batch+p.awake())
	if err != nil {
		return err
	}
	for _, item := range items {
		if ctx.Err() != nil {
			return nil
		}
		if !p.rests(item) {
			p.begin(ctx, s, item, false)
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
			select {
			case p.nudged <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.opts.RecoverEvery):
		}
	}
}
