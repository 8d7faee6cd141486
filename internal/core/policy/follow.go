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
// What is found counts when it is found twice in a row: a file may be caught
// half written, and half a set forbids less than the whole.
//
// Follow returns when ctx ends and leaves nothing running.
func (e *Engine) Follow(ctx context.Context, every time.Duration, log func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	found, complaint := "", ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		seen, err := e.again(found)
		settled := seen == found
		found = seen
		switch {
		case !settled:
		case err != nil && err.Error() != complaint:
			complaint = err.Error()
			log(err)
		case err == nil && complaint != "":
			complaint = ""
			log(nil)
		}
	}
}

// again asks the sources and returns what tells what they hold from all else:
// its version, or why there is none. Where that is what was found before, it is
// put into force.
func (e *Engine) again(found string) (seen string, err error) {
	e.reload.Lock()
	defer e.reload.Unlock()
	documents, version, err := e.read()
	if err != nil {
		return err.Error(), err
	}
	if version != found {
		return version, nil
	}
	return version, e.use(documents, version)
}
