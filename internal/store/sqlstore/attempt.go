package sqlstore

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

// attempt runs the batch in one transaction. A closure that fails ends it with
// that closure's place; bad is -1 if all shared the outcome err. After a fault
// the batch may be run again: nothing of it was committed.
func (c *committer) attempt(batch []*request) (bad int, fault Fault, err error) {
	e := c.writer.engine
	last := batch[len(batch)-1].last
	if last && !c.entered && !slices.ContainsFunc(batch, func(r *request) bool { return r.fn != nil }) {
		return -1, Refused, nil
	}
	register := !last && !c.registered
	if register && !c.entered {
		if e.Enter != nil {
			if err := e.Enter(); err != nil {
				return -1, Refused, fmt.Errorf("registering this process: %w", err)
			}
		}
		c.entered = true
	}
	if twice.Load() {
		if err := c.rehearse(batch, register); err != nil {
			return -1, e.fault(err), err
		}
	}

	tx, err := c.writer.begin()
	if err != nil {
		return -1, e.fault(err), err
	}
	defer c.writer.spare(tx)
	if err := c.hold(tx, register); err != nil {
		return c.abort(tx, -1, err)
	}
	for i, r := range batch {
		if r.fn == nil {
			continue
		}
		tx.writer.tenant = r.tenant
		if err := tx.do(r.fn); err != nil {
			return c.abort(tx, i, err)
		}
	}
	tx.writer.tenant = store.AllTenants
	left := false
	if last && c.entered {
		if left, err = tx.leave(e.Node.ID); err != nil {
			return c.abort(tx, -1, err)
		}
	}
	if err := tx.seal(); err != nil {
		return c.abort(tx, -1, err)
	}
	if fault, err := c.commit(tx); err != nil {
		return -1, fault, err
	}

	if len(tx.entries) > 0 {
		c.appended.Store(true)
		c.watchers.tell()
	}
	if tx.key != nil {
		c.writer.key = tx.key
	}
	c.registered = c.registered && !left || register
	c.last = tx.after
	if left {
		c.leave(true)
	}
	return -1, Refused, nil
}

// hold makes sure that this process may write, and puts the node on the books
// if it is to be there.
func (c *committer) hold(tx *tx, register bool) (err error) {
	e := c.writer.engine
	if e.Server == nil {
		tx.before = c.last // other processes may have gone on from there
		if e.Same != nil {
			if err := e.Same(); err != nil {
				return fmt.Errorf("%w: %w", store.ErrTampered, err)
			}
		}
		if register {
			return tx.InsertNode(e.Node)
		}
		return nil
	}
	how := Borrows
	switch {
	case c.registered:
		how = Stays
	case register:
		how = Joins
	}
	if tx.before, err = e.Server.Hold(tx, how); err != nil {
		return err
	}
	tx.chain = tx.before.Head.ID
	if tx.before.older(c.last) {
		return fmt.Errorf("%w: chain %d was at entry %d when this node last wrote, and now is at entry %d: the database is an older copy, or a standby that had not received all",
			store.ErrTampered, tx.chain, c.last.Head.Seq, tx.before.Head.Seq)
	}
	return nil
}

// older reports whether p is of the same chain as last, and of a time before it.
func (p Place) older(last Place) bool {
	is, was := p.Head, last.Head
	return is.ID == was.ID && (is.Seq < was.Seq || is.Seq == was.Seq && is.Head != was.Head || p.Mark < last.Mark)
}

// commit ends the transaction. If the server did not answer, commit asks again what
// became of the transaction before it reports to any caller.
func (c *committer) commit(tx *tx) (Fault, error) {
	e := c.writer.engine
	err := c.writer.commit(tx.last, tx.args)
	if err == nil {
		return Refused, nil
	}
	c.writer.discard()
	if fault := e.fault(err); fault == Full { // the commit frame comes last, and did not get its room
		return fault, err
	}
	if e.Server == nil {
		c.failed = fmt.Errorf("%w: %w", store.ErrFailed, err)
		return Refused, fmt.Errorf("%w: %w", store.ErrUncertain, c.failed)
	}
	if fault := e.fault(err); fault != Lost {
		return fault, err
	}
	defer c.away.Store(nil)
	for tries := 1; ; tries++ {
		ctx, cancel := c.writer.patience()
		settled, again := e.Server.Settled(ctx, tx.before, tx.after)
		cancel()
		switch {
		case settled && again == nil:
			return Refused, nil
		case again == nil:
			return Lost, err
		case errors.Is(again, store.ErrLapsed): // no other process can tell either
			c.registered = false
			return Refused, fmt.Errorf("%w: %w; %v", store.ErrUncertain, err, again)
		case e.fault(again) == Refused || c.over():
			c.failed = fmt.Errorf("%w: what became of it cannot be learnt: %w", store.ErrFailed, errors.Join(err, again))
			return Refused, fmt.Errorf("%w: %w", store.ErrUncertain, c.failed)
		}
		c.away.Store(&again)
		time.Sleep(pause(tries))
	}
}

// abort rolls back and returns err, having drawn the consequences of it. Not
// the closure at bad is at fault where the transaction as a whole is.
func (c *committer) abort(tx *tx, bad int, err error) (int, Fault, error) {
	e := c.writer.engine
	if e.Fatal != nil && (e.Fatal(err) || e.Fatal(tx.err)) {
		c.failed = fmt.Errorf("%w: %w", store.ErrFailed, err)
		err = c.failed
	}
	if errors.Is(err, store.ErrLapsed) {
		c.registered = false
	}
	fault := e.fault(tx.err)
	if fault == Refused && e.fault(err) == Full {
		fault = Full
	}
	c.writer.rollback()
	if fault != Refused {
		bad = -1
	}
	return bad, fault, err
}

func (c *committer) leave(clean bool) {
	if c.entered {
		if leave := c.writer.engine.Leave; leave != nil {
			ctx, cancel := c.writer.patience()
			defer cancel()
			leave(ctx, clean)
		}
		c.entered = false
	}
}

// do runs one closure. A panic is its error: others wait for this goroutine.
func (t *tx) do(fn func(store.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	// A closure may have passed over an error, and the transaction with it.
	return t.err
}
