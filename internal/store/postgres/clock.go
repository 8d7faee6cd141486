package postgres

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// maxLag is how long a query for the time may take to be believed: the answer is off by half of
// that at most.
const maxLag = time.Second

// A clock tells the database's time without asking it each time: from the last reading on, this
// machine's monotonic clock counts. So it takes no notice of what this machine's own time is, nor
// of a change of that.
type clock struct {
	last atomic.Pointer[clockReading]
}

// A clockReading is the database's time at a moment of this machine's monotonic clock.
type clockReading struct{ at, is time.Time }

// now returns the database's time.
func (c *clock) now() time.Time {
	r := c.last.Load()
	return r.is.Add(time.Since(r.at))
}

// read asks the database for its time.
func (c *clock) read(ctx context.Context, db *sql.DB) error {
	begin := time.Now()
	var micros int64
	if err := db.QueryRowContext(ctx, "SELECT "+now).Scan(&micros); err != nil {
		return err
	}
	c.set(begin, micros)
	return nil
}

// set takes up a time that the database told in answer to a query that was sent at begin. A
// reading that the one before agrees with, as far as it can tell, changes nothing: the clock of a
// host does not jump by what the network takes.
func (c *clock) set(begin time.Time, micros int64) {
	lag := time.Since(begin)
	next := &clockReading{begin.Add(lag / 2), time.UnixMicro(micros).UTC()}
	had := c.last.Load()
	if had != nil && (lag > maxLag || next.is.Sub(had.is.Add(next.at.Sub(had.at))).Abs() <= lag/2) {
		return
	}
	c.last.Store(next)
}
