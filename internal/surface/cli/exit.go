package cli

import (
	"context"
	"errors"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/input"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

// The exit statuses. They are added to, never changed.
const (
	exitOK       = 0
	exitInternal = 1   // a fault of the host, or a check that found something
	exitUsage    = 2   // the command line is wrong
	exitInput    = 3   // the input or the request is not what it should be
	exitAbsent   = 4   // there is no such thing, or it is switched off
	exitRefused  = 5   // policy, scopes, hooks or approvals said no
	exitPlugin   = 6   // the plugin failed
	exitTimeout  = 7   // a deadline passed
	exitLater    = 8   // not now; try again
	exitUnknown  = 9   // an effect may or may not have happened
	exitWaits    = 10  // it has not ended: it waits for approval, or is still at work
	exitCancel   = 130 // Ctrl-C, as shells have it
	exitPipe     = 141 // standard output was closed by its reader, as shells have it
)

// statuses maps every code to its exit status; a test walks the codes.
var statuses = map[plugin.Code]int{
	plugin.CodeUnauthenticated: exitRefused, plugin.CodeScopeDenied: exitRefused, plugin.CodeSignInRequired: exitRefused, plugin.CodePolicyDenied: exitRefused,
	plugin.CodeHookVetoed: exitRefused, plugin.CodeHookFailed: exitRefused, plugin.CodeServiceDenied: exitRefused,
	plugin.CodeEffectUndeclared: exitRefused, plugin.CodeEgressDenied: exitRefused, plugin.CodeApprovalDenied: exitRefused,
	plugin.CodeApprovalExpired: exitRefused, plugin.CodeApprovalVoid: exitRefused, plugin.CodeIsolationUnavailable: exitRefused,
	plugin.CodeApprovalUsed: exitRefused, plugin.CodeApprovalSelf: exitRefused,

	plugin.CodeNotFound: exitAbsent, plugin.CodeDisabled: exitAbsent, plugin.CodeQuarantined: exitAbsent,

	plugin.CodeInvalidInput: exitInput, plugin.CodeInputTooLarge: exitInput, plugin.CodeNeedsContext: exitInput,
	plugin.CodeMissingSecrets: exitInput, plugin.CodeMissingIdentity: exitInput, plugin.CodeKeyConflict: exitInput,
	plugin.CodeConflict: exitInput,

	plugin.CodeInvalidOutput: exitPlugin, plugin.CodeOutputTooLarge: exitPlugin, plugin.CodePluginError: exitPlugin,
	plugin.CodeLimitExceeded: exitPlugin, plugin.CodeDependencyMissing: exitPlugin, plugin.CodeLaunchFailed: exitPlugin,
	plugin.CodeHandshakeFailed: exitPlugin, plugin.CodeCrashed: exitPlugin, plugin.CodeMalformedResponse: exitPlugin,
	plugin.CodeToolNotExposed: exitPlugin, plugin.CodeProtocolVersionMismatch: exitPlugin,
	plugin.CodeCapabilityNotDeclared: exitPlugin, plugin.CodeCapabilityNotAllowed: exitPlugin,

	plugin.CodeTimeout: exitTimeout, plugin.CodeOutcomeUnknown: exitUnknown, plugin.CodeCancelled: exitCancel, plugin.CodeInternal: exitInternal,

	plugin.CodeBudgetExceeded: exitLater, plugin.CodeRateLimited: exitLater, plugin.CodeOverloaded: exitLater, plugin.CodeUnavailable: exitLater,
}

// usage is an error of the command line itself.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// unknownOutcome is how a call failed that may have had its effect. What went wrong
// is in its code; the exit status says that the outcome is unknown.
type unknownOutcome struct{ error }

func (u unknownOutcome) Unwrap() error { return u.error }

// exitStatus returns the exit status for an error.
func exitStatus(err error) int {
	var coded *plugin.Error
	var waits unfinished
	var unknown unknownOutcome
	switch {
	case isUsage(err):
		return exitUsage
	case errors.As(err, &unknown):
		return exitUnknown
	case errors.As(err, &waits) && !errors.Is(err, context.Canceled):
		return exitWaits
	case errors.As(err, &coded):
		return statuses[coded.Code]
	case errors.Is(err, context.Canceled):
		return exitCancel
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	default:
		return exitInternal
	}
}

// isUsage reports whether the command line is at fault, or what it names: the
// configuration and the data directory.
func isUsage(err error) bool {
	var setup *setup.Error
	return isMisuse(err) || errors.As(err, &setup)
}

// isMisuse reports whether the command line is at fault.
func isMisuse(err error) bool {
	var wrong usage
	var misread input.Misuse
	return errors.As(err, &wrong) || errors.As(err, &misread)
}

// errorOf returns what a program reads of an error.
func errorOf(err error) map[string]any {
	var coded *plugin.Error
	switch {
	case errors.As(err, &coded):
	case isUsage(err):
		coded = &plugin.Error{Code: plugin.CodeInvalidInput, Message: err.Error()}
	default:
		coded = &plugin.Error{Code: plugin.CodeInternal, Message: err.Error()}
	}
	return view.Error(coded)
}

// exitHelp is the help topic on exit statuses.
func exitHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "List the exit statuses",
		Long:  view.ExitCodes,
	}
}
