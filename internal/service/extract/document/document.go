// Package document is what a host and its reader of documents agree on: the kinds
// of files, the bounds, the messages, and why a file gives no text.
package document

import (
	"fmt"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of one file.
const (
	MaxFile = 64 << 20 // bytes
	MaxText = 16 << 20 // bytes of the text that comes of it
)

// The kinds of files that are read.
const (
	Text  = "text"
	HTML  = "html"
	PDF   = "pdf"
	DOCX  = "docx"
	PPTX  = "pptx"
	XLSX  = "xlsx"
	Mail  = "mail"
	Image = "image"

	Package = "document" // a zip archive: which kind of document it is, the reader tells
)

// A Refusal says that a file gives no text, and that it is the file's fault.
type Refusal struct {
	Reason  string // as skips are named: unsupported_format, too_large, empty_extraction, other
	Code    plugin.Code
	Message string

	// Passing: the same file may give text once something is installed here.
	Passing bool
}

func (r *Refusal) Error() string { return r.Message }

// Final reports whether the same file is refused whenever it comes: it is the
// file that cannot be read, and not this host that could not read it.
func (r *Refusal) Final() bool {
	return !r.Passing && (r.Code == plugin.CodeInvalidInput || r.Code == plugin.CodeInputTooLarge)
}

// The reasons, as the Shu contract spells them.
const (
	Unsupported = "unsupported_format"
	TooLarge    = "too_large"
	Empty       = "empty_extraction"
	Other       = "other"
)

// Refuse returns a refusal that is final.
func Refuse(reason, format string, args ...any) error {
	code := plugin.CodeInvalidInput
	if reason == TooLarge {
		code = plugin.CodeInputTooLarge
	}
	return &Refusal{Reason: reason, Code: code, Message: fmt.Sprintf(format, args...)}
}
