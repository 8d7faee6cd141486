// Package reader reads documents that strangers wrote: it is the program that a host
// starts in a cage.
//
// One file comes after the other on standard input, as package document says, and its
// text goes to standard output. A file that ends the process is refused by the host.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// Main is the program: `docread [DIR [MEMORY]]`, or `docread compile DIR`, which
// compiles PDFium into a directory, for the readers that cannot write there. It
// reads files from in until that ends, and returns the exit status.
func Main(args []string, in io.Reader, out io.Writer) int {
	if len(args) == 2 && args[0] == document.Compile {
		if err := compile(context.Background(), args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	w := worker{memory: 1 << 30}
	if len(args) > 0 {
		w.dir = args[0]
	}
	if len(args) > 1 {
		if n, err := strconv.ParseInt(args[1], 10, 64); err == nil && n > 0 {
			w.memory = n
		}
	}
	debug.SetMemoryLimit(w.memory * 3 / 4)
	debug.SetMaxStack(256 << 20)
	if err := w.serve(in, out); !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A content is what came of a file.
type content struct {
	Text       string
	Title      string // that the file gives itself, "" for none
	Method     string // text or pdf_text
	Engine     string // what read it
	Confidence float64
	Details    map[string]any
}

// A worker reads one file after the other.
type worker struct {
	dir    string // of what is compiled
	memory int64
	pdf    *pdfReader // nil until it is needed
}

func (w *worker) serve(in io.Reader, out io.Writer) error {
	for {
		var a document.Request
		body, err := document.Receive(in, &a, document.MaxFile)
		if err != nil {
			return err
		}
		answer, body := w.answer(a, body)
		if err := document.Send(out, answer, body); err != nil {
			return err
		}
	}
}

// answer reads a file. A parser that panics refuses its file.
func (w *worker) answer(a document.Request, file []byte) (answer document.Response, body []byte) {
	defer func() {
		if p := recover(); p != nil {
			answer, body = document.Response{Refusal: &document.Refusal{Reason: document.Other, Code: "invalid_input", Message: fmt.Sprintf("the %s cannot be read: the parser gave up", a.Kind)}}, nil
		}
	}()
	var refused *document.Refusal
	if a.Kind == document.Package {
		kind, err := packageKind(file)
		if errors.As(err, &refused) {
			return document.Response{Refusal: refused}, nil
		}
		a.Kind = kind
	}
	t, picture, pages, err := w.read(a, file)
	switch {
	case errors.As(err, &refused):
		return document.Response{Refusal: refused}, nil
	case err != nil:
		return document.Response{Failure: err.Error()}, nil
	case a.Draw:
		return document.Response{Pages: pages}, picture
	case len(t.Text) > 2*document.MaxText: // what is tidied away may be much, but not all there is
		return document.Response{Refusal: &document.Refusal{Reason: document.TooLarge, Code: "input_too_large", Message: fmt.Sprintf("the text of the file has %d bytes; at most %d are kept", len(t.Text), document.MaxText)}}, nil
	}
	return document.Response{Kind: a.Kind, Title: clip(t.Title), Method: t.Method, Engine: t.Engine, Confidence: t.Confidence, Details: t.Details}, []byte(t.Text)
}

func (w *worker) read(a document.Request, file []byte) (t content, picture []byte, pages int, err error) {
	switch a.Kind {
	case document.PDF:
		if w.pdf == nil {
			if w.pdf, err = newPDFReader(w.dir, w.memory); err != nil {
				return t, nil, 0, fmt.Errorf("starting PDFium: %w", err)
			}
		}
		if a.Draw {
			picture, pages, err = w.pdf.draw(file, a.Page)
		} else {
			t, err = w.pdf.text(file)
		}
	case document.Text:
		t = plain(file)
	case document.HTML:
		t, err = htmlText(file, a.MIME)
	case document.DOCX, document.PPTX:
		t, err = officeText(a.Kind, file)
	case document.XLSX:
		t, err = sheetText(file)
	case document.Mail:
		t, err = mailText(file)
	default:
		err = fmt.Errorf("no worker reads files of the kind %q", a.Kind)
	}
	return t, picture, pages, err
}

// clip keeps a title short.
func clip(text string) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), 500)])
}
