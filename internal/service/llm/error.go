package llm

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// A Kind says what went wrong with a query. It begins the text that a plugin
// reads, before a colon.
type Kind string

// The kinds.
const (
	NotConfigured Kind = "not_configured"  // there is no model
	Gap           Kind = "capability_gap"  // no model can do what the query needs
	Budget        Kind = "budget_exceeded" // it could cost more than is left
	Pace          Kind = "rate_limited"    // too many queries in too short a time, here or at the provider
	Auth          Kind = "auth"            // no key, or one that the provider does not accept
	Quota         Kind = "quota"           // what was paid for, or allowed, is used up at the provider
	Overloaded    Kind = "overloaded"      // the provider cannot answer now
	Unreachable   Kind = "unreachable"     // no connection, or one that broke
	Timeout       Kind = "timeout"         // no answer in time
	Cancelled     Kind = "cancelled"       // the caller is gone
	BadRequest    Kind = "bad_request"     // the provider does not take the request
	Refused       Kind = "refused"         // the model, or a filter around it, will not answer
	Malformed     Kind = "malformed"       // what came back is no answer of this provider
	TooLarge      Kind = "too_large"       // the answer, or the document, is larger than is accepted
	Internal      Kind = "internal"        // a fault of the host
)

// An Error is why a query, or one attempt at it, has no answer.
type Error struct {
	Kind       Kind
	Message    string        // safe to read: what, which, and what to do next
	Status     int           // of the HTTP answer, where there was one
	RetryAfter time.Duration // what the provider asked to wait
	Sent       bool          // the request was sent and it is unknown whether it is charged for
	Err        error         // the cause, for errors.Is; never shown
}

// Error returns the kind and the message.
func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// transient reports whether the same request may succeed in a while.
func (e *Error) transient() bool {
	switch e.Kind {
	case Pace, Overloaded, Unreachable, Timeout:
		return true
	}
	return false
}

func errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// maxSaid is how much of what a provider says is repeated.
const maxSaid = 300

// said returns what a provider says so that it can stand in one line, without
// the key in it.
func said(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "..."
	}
	return strings.TrimSpace(text)
}
