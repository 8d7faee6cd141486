package view

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/plugin"
)

// NextStep is what to do about a call or a command that found a plugin absent
// or switched off, which the message itself does not say.
func NextStep(err error) string {
	switch plugin.CodeOf(err) {
	case plugin.CodeNotFound:
		return "'mortise plugins list' shows what there is"
	case plugin.CodeDisabled:
		return "'mortise plugins enable NAME' lets it be called"
	}
	return ""
}

// WithNext adds the next step to a message.
func WithNext(err error) error {
	next := NextStep(err)
	if next == "" {
		return err
	}
	e := *plugin.AsError(err)
	e.Message += "; " + next
	return &e
}

// Message returns what a person reads of an error.
func Message(err error) string {
	var coded *plugin.Error
	if errors.As(err, &coded) && coded.Code == plugin.CodeInternal && coded.Err != nil {
		return fmt.Sprintf("%s: %s (%v)", coded.Code, coded.Message, coded.Err) // the operator of the host may see the cause
	}
	return err.Error()
}
