package view

import "github.com/mortise-dev/mortise/plugin"

// Error returns what a program reads of an error: its code, message and whether the same
// may succeed later, with the plugin's code, details and retry_after_ms where it has them.
func Error(coded *plugin.Error) map[string]any {
	e := map[string]any{"code": coded.Code, "message": coded.Message, "retryable": coded.Retryable}
	if coded.PluginCode != "" {
		e["plugin_code"] = coded.PluginCode
	}
	if len(coded.Details) > 0 {
		e["details"] = coded.Details
	}
	if coded.RetryAfter > 0 {
		e["retry_after_ms"] = coded.RetryAfter.Milliseconds()
	}
	return e
}

// ExitCodes is the help on exit statuses.
const ExitCodes = `What the exit status of a command means:

  0    it did what it was asked for
  1    a fault of the host itself, or a check that found something
  2    the command line is wrong
  3    the input is not what it should be (invalid_input, key_conflict, ...)
  4    there is no such thing, or it is switched off (not_found, disabled, quarantined)
  5    refused (policy_denied, scope_denied, service_denied, ...)
  6    the plugin failed (plugin_error, crashed, invalid_output, ...)
  7    a deadline passed (timeout)
  8    not now; try again later (overloaded, unavailable, rate_limited, ...)
  9    an effect may or may not have happened (outcome_unknown, or a call whose status is unknown)
  10   not finished: it waits for approval, or is still at work
  130  interrupted
  141  the reader of the output has gone, as in "| head -1"`
