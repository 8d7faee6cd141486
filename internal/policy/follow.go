package policy

import (
	"context"
	"time"
)

// Follow asks the sources again and again, as often as every says, until ctx
// ends, and puts what they hold into force once it has changed. A set that
// cannot be used leaves the old one in force; log hears of it once for as long
// as the complaint stays the same, and hears nil once it is over.
//
// Follow returns when ctx ends and leaves nothing running.
func (e *Engine) Follow(ctx context.Context, every time.Duration, log func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	complaint := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := e.Reload(); {
		case err != nil && err.Error() != complaint:
			complaint = err.Error()
			log(err)
		case err == nil && complaint != "":
			complaint = ""
			log(nil)
		}
	}
}
