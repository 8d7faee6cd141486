package cli

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// answerDry prints what a dry run found out, before what the plugin answered or
// why there is no answer.
func (c *command) answerDry(ref string, res plugin.Result, err error) error {
	if c.json {
		return c.answer(ref, res, err)
	}
	if d := res.DryRun; d != nil {
		if printErr := view.DryRun(c.out, d); printErr != nil {
			return printErr
		}
		if err == nil && len(res.Data) > 0 && string(res.Data) != "null" {
			fmt.Fprintln(c.out, "\nit answered:")
		}
	}
	if err == nil {
		defer c.say("this was a dry run: nothing of it has happened")
	}
	return c.answer(ref, res, err)
}
