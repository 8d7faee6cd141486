package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
)

// Arg is the first argument of a program that is to be a worker.
const Arg = "extract-worker"

// compileArg is the second of one that is to compile PDFium instead.
const compileArg = "compile"

// Worker is the program of a worker: `mortise extract-worker [DIR [MEMORY]]`, or
// `mortise extract-worker compile DIR`. It reads files from in until that ends,
// and returns the exit status.
func Worker(args []string, in io.Reader, out io.Writer) int {
	if len(args) == 2 && args[0] == compileArg {
		if err := Compile(context.Background(), args[1]); err != nil {
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

// A worker reads one file after the other.
type worker struct {
	dir    string // of what is compiled
	memory int64
	pdf    *pdfReader // nil until it is needed
}

func (w *worker) serve(in io.Reader, out io.Writer) error {
	for {
		var a asked
		body, err := receive(in, &a, MaxFile)
		if err != nil {
			return err
		}
		answer, body := w.answer(a, body)
		if err := send(out, answer, body); err != nil {
			return err
		}
	}
}

// answer reads a file. A parser that panics refuses its file.
func (w *worker) answer(a asked, file []byte) (answer answered, body []byte) {
	defer func() {
		if p := recover(); p != nil {
			answer, body = answered{Refusal: &Refusal{Reason: Other, Code: "invalid_input", Message: fmt.Sprintf("the %s cannot be read: the parser gave up", a.Kind)}}, nil
		}
	}()
	var refused *Refusal
	if a.Kind == kindPackage {
		kind, err := packageKind(file)
		if errors.As(err, &refused) {
			return answered{Refusal: refused}, nil
		}
		a.Kind = kind
	}
	t, picture, pages, err := w.read(a, file)
	switch {
	case errors.As(err, &refused):
		return answered{Refusal: refused}, nil
	case err != nil:
		return answered{Failure: err.Error()}, nil
	case a.Draw:
		return answered{Pages: pages}, picture
	case len(t.Text) > 2*MaxText: // what is tidied away may be much, but not all there is
		return answered{Refusal: &Refusal{Reason: TooLarge, Code: "input_too_large", Message: fmt.Sprintf("the text of the file has %d bytes; at most %d are kept", len(t.Text), MaxText)}}, nil
	}
	return answered{Kind: a.Kind, Title: clip(t.Title), Method: t.Method, Engine: t.Engine, Confidence: t.Confidence, Details: t.Details}, []byte(t.Text)
}

func (w *worker) read(a asked, file []byte) (t Text, picture []byte, pages int, err error) {
	switch a.Kind {
	case kindPDF:
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
	case kindHTML:
		t, err = htmlText(file, a.MIME)
	case kindDOCX, kindPPTX:
		t, err = officeText(a.Kind, file)
	case kindXLSX:
		t, err = sheetText(file)
	case kindMail:
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
