package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// answerRun prints the result in the form that the flags or the contract want.
func (r *run) answerRun(res plugin.Result, done []exported, err error) error {
	if err != nil && res.Status == plugin.Unknown {
		err = unknownOutcome{err}
	}
	switch {
	case r.flags.dryRun != "":
		return r.answerDry(r.ref, res, err)
	case r.flags.envelope != "":
		return r.answerIn(r.flags.envelope, r.target, res, err)
	case r.investigates():
		return r.answerSpelled(res, done, err)
	}
	return r.answer(r.ref, res, err)
}

// waits reports whether a call has not ended, and why it is not waited for.
func waits(res plugin.Result, err error) (unfinished, bool) {
	var why unfinished
	if !errors.As(err, &why) && (err != nil || res.Status == "" || res.Status.Ended()) {
		return why, false
	}
	if why.Err == nil {
		why.Err = host.ErrNotFinished
	}
	return why, true
}

// answerIn prints the answer in the envelope of a contract. The exit status is that of
// any other run.
func (c *command) answerIn(envelope string, t *plugin.Target, res plugin.Result, err error) error {
	spelled := err
	why, waiting := waits(res, err)
	if waiting {
		spelled, err = nil, why
	} else if isUsage(err) {
		spelled = &plugin.Error{Code: plugin.CodeInvalidInput, Message: err.Error()}
	}
	if printErr := c.print(host.Envelope(envelope, t, res, spelled, c.debug)); printErr != nil {
		return printErr
	}
	return asReported(err)
}

// answerSpelled prints the result of an investigation plugin, with the members that its
// contract knows beside the host's own.
func (r *run) answerSpelled(res plugin.Result, done []exported, err error) error {
	if _, waiting := waits(res, err); waiting {
		return r.answer(r.ref, res, err)
	}
	if r.json {
		return r.answerSpelledJSON(res, done, err)
	}
	answered := r.answer(r.ref, res, err)
	view.Made(r.out, res.Artifacts)
	if answered != nil {
		return answered
	}
	r.showExported(done)
	if res.Metrics["fresh_process"] == true {
		r.say("the process of the session is a new one; what its plugins kept in memory before is lost")
	}
	return nil
}

func (r *run) answerSpelledJSON(res plugin.Result, done []exported, err error) error {
	if !r.debug {
		res.Diagnostics = nil
	}
	if err != nil && res.Status != plugin.Unknown {
		res.Status = plugin.Failed
	}
	raw, encodeErr := json2.Marshal(res)
	if encodeErr != nil {
		return encodeErr
	}
	var own map[string]jsontext.Value
	if err := json2.Unmarshal(raw, &own); err != nil {
		return err
	}
	object := map[string]any{}
	for name, value := range own {
		object[name] = value
	}
	maps.Copy(object, host.Spelled(r.target, r.session.ID, res, err))
	if len(done) > 0 {
		object["exported"] = done
	}
	if err != nil {
		object["error"] = errorOf(err)
	}
	if printErr := r.print(object); printErr != nil {
		return printErr
	}
	return asReported(err)
}

// answer prints a result, or why there is none. One that has not ended is
// reported as unfinished.
func (c *command) answer(ref string, res plugin.Result, err error) error {
	if why, waiting := waits(res, err); waiting {
		return c.answerUnfinished(res, why)
	}
	if !c.debug {
		res.Diagnostics = nil
	}
	if c.json {
		return c.answerJSON(res, err)
	}
	if err != nil {
		c.say("mortise: %s", view.Message(err))
		if _, statErr := os.Stat(ref); statErr == nil && plugin.CodeOf(err) == plugin.CodeNotFound {
			c.say("to run the plugin in the directory of that name: mortise run ./%s", ref)
		} else if next := view.NextStep(err); next != "" {
			c.say("%s", next)
		}
		c.adviseDenied(err)
		view.Failed(c.errs, res, err)
		return reported{err}
	}
	return view.Result(c.out, c.errs, res)
}

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

// answerUnfinished prints how a call stands, and how to go on with it.
func (c *command) answerUnfinished(res plugin.Result, why unfinished) error {
	if c.json {
		if err := c.print(res); err != nil {
			return err
		}
	} else {
		if _, err := fmt.Fprintln(c.out, res.CallID); err != nil {
			return err
		}
		c.say("%s", view.Unfinished(res))
	}
	return reported{why}
}

// answerJSON prints one object: the result, with an error beside it if it failed.
func (c *command) answerJSON(res plugin.Result, err error) error {
	if err == nil {
		return c.print(res)
	}
	if res.Status != plugin.Unknown {
		res.Status = plugin.Failed
	}
	raw, encodeErr := json2.Marshal(res, json2.Deterministic(true))
	if encodeErr != nil {
		return encodeErr
	}
	failure, encodeErr := json2.Marshal(errorOf(err), json2.Deterministic(true))
	if encodeErr != nil {
		return encodeErr
	}
	raw = append(append(append(raw[:len(raw)-1], `,"error":`...), failure...), '}')
	if printErr := c.printRaw(raw); printErr != nil {
		return printErr
	}
	return reported{err}
}
