package sqlstore

import "sync/atomic"

// twice makes every committer run the closures of a transaction twice; see [RunTwice].
var twice atomic.Bool

// RunTwice makes every store of this process run each closure once in a transaction that is
// rolled back, before it runs the closure for good. A store may always run a closure again,
// because another closure of its transaction failed or the server asked for it. Tests call
// RunTwice so that all closures are run again, rather than one in a thousand.
func RunTwice() { twice.Store(true) }

// rehearse runs the closures of a batch in a transaction that is rolled back. The error of a
// closure ends it, and is found again by the transaction that follows.
func (c *committer) rehearse(batch []*request, register bool) error {
	tx, err := c.writer.begin()
	if err != nil {
		return err
	}
	defer c.writer.spare(tx)
	err = c.hold(tx, register)
	for i := 0; err == nil && i < len(batch); i++ {
		if fn := batch[i].fn; fn != nil {
			tx.writer.tenant = batch[i].tenant
			err = tx.do(fn)
		}
	}
	c.writer.rollback()
	if c.writer.conn == nil { // the connection was lost
		return err
	}
	return nil
}
