package worker

import (
	"context"
	"log/slog"
)

// trouble is what goes wrong again and again, such as a database that is away.
// It is told when it begins and when it is over, not each time.
type trouble struct{ now bool }

func (t *trouble) tell(ctx context.Context, log *slog.Logger, what string, err error) {
	switch {
	case ctx.Err() != nil: // the host is stopping
	case err != nil && !t.now:
		t.now = true
		log.Error(what+" does not work, and is tried again", "cause", err.Error())
	case err == nil && t.now:
		t.now = false
		log.Warn(what + " works again")
	}
}
