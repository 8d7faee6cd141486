package cli

import (
	"github.com/mortise-dev/mortise/plugin"
)

// answerAs prints the result in the form that the flags or the contract want.
func (c *command) answerAs(ref, session string, t *plugin.Target, f runFlags, res plugin.Result, done []exported, err error) error {
	if err != nil && res.Status == plugin.Unknown {
		err = unknownOutcome{err}
	}
	switch {
	case f.dryRun != "":
		return c.answerDry(ref, res, err)
	case f.envelope != "":
		return c.answerIn(f.envelope, t, res, err)
	case t != nil && t.Manifest.Contract.Investigates:
		return c.answerEventMill(ref, session, res, done, err)
	}
	return c.answer(ref, res, err)
}
