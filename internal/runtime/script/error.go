package script

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// An Exception is what a plugin threw. It is the cause of the error that the
// caller gets.
type Exception struct {
	Name    string // TypeError, or "thrown" for what is no error
	Message string
	stack   string
}

// Error returns the name and the message.
func (e *Exception) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// OwnWords returns the message alone, as plugin.error@v1 carries it.
func (e *Exception) OwnWords() string { return e.Message }

// Stack returns where it was thrown, in the files of the plugin: a line for each
// function, the innermost first.
func (e *Exception) Stack() string { return e.stack }

// explain makes what a caller gets of an error of the engine. What names the
// piece of code that was called.
func (p *Program) explain(what string, limit time.Duration, err error) *plugin.Error {
	var (
		coded  *plugin.Error
		t      *thrown
		m      *misfit
		failed *crash
	)
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &t):
		return p.threw(what, t)
	case errors.As(err, &m) && m.tooLarge:
		return plugin.Errorf(plugin.CodeOutputTooLarge, "%s: %w", what, err)
	case errors.As(err, &m):
		return plugin.Errorf(plugin.CodeInvalidOutput, "%s: %w", what, err)
	case errors.Is(err, errStopped):
		return plugin.Errorf(plugin.CodeTimeout, "%s was stopped: %w of %s", what, err, limit)
	case errors.Is(err, errRevoked):
		return plugin.Errorf(plugin.CodeTimeout, "%s was ended by force: %w, at its deadline of %s; the plugin is disabled for this agent until it is enabled again", what, err, limit)
	case errors.Is(err, errPending):
		return plugin.Errorf(plugin.CodeTimeout, "%s will never end: %w", what, err)
	case errors.Is(err, errMemory):
		return plugin.Errorf(plugin.CodeLimitExceeded, "%s was stopped: %w", what, err)
	case errors.As(err, &failed):
		return plugin.Errorf(plugin.CodeCrashed, "%s ended with a fault of the engine; the plugin is disabled for this agent until it is enabled again: %w", what, err)
	}
	return plugin.AsError(err)
}

// threw tells of an exception, with its place.
func (p *Program) threw(what string, t *thrown) *plugin.Error {
	e := &Exception{Name: cut(t.name, shownText), Message: t.message, stack: p.where.stack(t.stack)}
	message := what + ": " + e.Error()
	if place := top(e.stack); place != "" {
		message += " (" + place + ")"
	}
	details, err := json.Marshal(map[string]string{"stack": e.stack})
	if err != nil {
		details = nil // two strings: cannot be
	}
	return &plugin.Error{Code: plugin.CodePluginError, Message: message, Details: details, Err: e}
}
