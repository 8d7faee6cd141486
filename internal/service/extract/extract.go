// Package extract wins text from files: HTML, PDF, Word, PowerPoint, Excel, mail
// and images.
//
// Files come from strangers. Text in UTF-8 is read here; all else is parsed by a
// worker, a program of its own (package reader) in a cage without network and with
// bounds on memory and time, which one file after the other goes through. A file that
// crashes it, or holds it up, costs that file and the worker, and nothing else.
// Images are read by tesseract, in a cage too, where that is installed.
//
//	x := extract.New(extract.Options{Sandbox: box, Scratch: dir})
//	defer x.Close()
//	text, err := x.Extract(ctx, extract.File{Data: data, MIME: "application/pdf"}, extract.Fallback)
//
// What the file itself is to blame for is a [*Refusal].
package extract

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/extract/document"
	"github.com/mortise-dev/mortise/plugin"
)

// Version changes whenever the same file may give another text.
const Version = "2"

// Bounds of one file.
const (
	MaxFile  = document.MaxFile // bytes
	MaxText  = document.MaxText // bytes of the text that comes of it
	maxPages = 500              // that are read by OCR
)

// A Mode says when text is read from pictures (Shu: "always | auto | fallback |
// never").
type Mode string

// The modes.
const (
	Always   Mode = "always"   // of PDF and images; an error where that cannot be done
	Auto     Mode = "auto"     // of PDF and images, where it can be done
	Fallback Mode = "fallback" // where no text came otherwise
	Never    Mode = "never"
)

// Modes are all of them.
var Modes = []string{string(Always), string(Auto), string(Fallback), string(Never)}

// ParseMode returns the mode of that name; "" is [Fallback].
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case "":
		return Fallback, nil
	case Always, Auto, Fallback, Never:
		return m, nil
	}
	return "", plugin.Errorf(plugin.CodeInvalidInput, "the OCR mode is %.40q; it is one of %s", name, strings.Join(Modes, ", "))
}

// A File is what text is wanted of.
type File struct {
	Data []byte
	MIME string // as its source says; what the bytes say counts for more
	Name string // "" if unknown
}

// A Text is what came of a file.
type Text struct {
	Text       string
	Title      string         // that the file gives itself, "" for none
	Kind       string         // of the file: pdf, docx, html, ...
	Method     string         // text, pdf_text or ocr
	Engine     string         // what read it
	Confidence float64        // of OCR, 0 to 1; 1 for all else
	Took       time.Duration  //
	Details    map[string]any // never nil
}

// A Refusal says that a file gives no text, and that it is the file's fault.
type Refusal = document.Refusal

// The reasons of a refusal.
const (
	Unsupported = document.Unsupported
	TooLarge    = document.TooLarge
	Empty       = document.Empty
	Other       = document.Other
)

// Coded returns an error of this package as one with a code.
func Coded(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		return &plugin.Error{Code: r.Code, Message: r.Message, Err: err}
	}
	return err
}

// Options say how files are read.
type Options struct {
	Sandbox   *sandbox.Sandbox
	Command   []string      // starts a worker, the first an absolute path; the program that the host carries where it is empty
	Dir       string        // where that program and compiled code are kept; without it each worker compiles again
	Scratch   string        // where workers have their directories
	Hide      []string      // of the machine, from workers
	Memory    int64         // bytes of a worker; 1 GiB where it is 0
	Timeout   time.Duration // of a file, or of a page that is read by OCR; 60 s where it is 0
	Tesseract string        // the program; looked for in PATH where it is empty
	Languages string        // as tesseract names them; eng where it is empty
}

// An Extractor wins text from files. It is safe for concurrent use; the worker
// takes one file at a time.
type Extractor struct {
	opts Options
	pool *pool
	ocr  ocr
}

// New returns an extractor. Nothing is started yet. Close must be called.
func New(o Options) *Extractor {
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Languages == "" {
		o.Languages = "eng"
	}
	return &Extractor{opts: o, pool: newPool(o), ocr: newOCR(o)}
}

// Close ends the worker.
func (x *Extractor) Close() error { return x.pool.close() }

// Extract returns the text of a file.
func (x *Extractor) Extract(ctx context.Context, f File, mode Mode) (Text, error) {
	began := time.Now()
	if len(f.Data) > MaxFile {
		return Text{}, document.Refuse(document.TooLarge, "the file has %d bytes; at most %d are read", len(f.Data), MaxFile)
	}
	kind, err := kindOf(f)
	if err != nil {
		return Text{}, err
	}
	t, err := x.read(ctx, kind, f, mode)
	if err != nil {
		return Text{}, err
	}
	if t.Took = time.Since(began); t.Kind == "" {
		t.Kind = kind
	}
	t.Text = document.Tidy(t.Text)
	switch {
	case len(t.Text) > MaxText:
		return Text{}, document.Refuse(document.TooLarge, "the text of the file has %d bytes; at most %d are kept", len(t.Text), MaxText)
	case strings.TrimSpace(t.Text) == "":
		hint, passing := x.hint(kind, mode)
		return Text{}, &Refusal{Reason: Empty, Code: plugin.CodeInvalidInput, Message: "no text came of the file, a " + kind + hint, Passing: passing}
	}
	return t, nil
}

// hint says what might give text all the same, and whether that is something to
// be installed here.
func (x *Extractor) hint(kind string, mode Mode) (hint string, passing bool) {
	switch {
	case kind != document.PDF && kind != document.Image:
		return "", false
	case mode == Never:
		return "; the OCR mode is never", false
	case x.ocr.missing() != nil:
		return "; its pages may be pictures, and tesseract is not installed", true
	}
	return "", false
}

// read returns the text of a file of a known kind.
func (x *Extractor) read(ctx context.Context, kind string, f File, mode Mode) (Text, error) {
	switch {
	case kind == document.Text && utf8.Valid(f.Data):
		text := strings.TrimPrefix(string(f.Data), "\ufeff")
		return Text{Text: text, Method: "text", Engine: "text", Confidence: 1, Details: map[string]any{"encoding": "utf-8"}}, nil
	case kind == document.Image:
		if mode == Never {
			return Text{}, document.Refuse(document.Empty, "the file is a picture, and the OCR mode is never")
		}
		return x.ocr.image(ctx, f.Data)
	case kind == document.PDF:
		return x.pdf(ctx, f, mode)
	}
	return x.pool.text(ctx, kind, f)
}

// pdf is the policy for files that may hold text, pictures of text, or both.
func (x *Extractor) pdf(ctx context.Context, f File, mode Mode) (Text, error) {
	missing := x.ocr.missing()
	switch {
	case mode == Always:
		return x.pages(ctx, f)
	case mode == Auto && missing == nil:
		return x.pages(ctx, f)
	}
	t, err := x.pool.text(ctx, document.PDF, f)
	if err != nil || mode == Never || strings.TrimSpace(t.Text) != "" || missing != nil {
		if mode == Auto && missing != nil && err == nil {
			t.Details["ocr"] = "unavailable"
		}
		return t, err
	}
	return x.pages(ctx, f)
}
