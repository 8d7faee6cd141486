package extract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
	"github.com/mortise-dev/mortise/plugin"
)

// An ocr reads text from pictures, by tesseract's command line. Each picture is
// a process of its own, in a cage.
type ocr struct {
	opts    Options
	program func() (string, error)
}

func newOCR(o Options) ocr {
	return ocr{o, sync.OnceValues(func() (string, error) {
		path, err := exec.LookPath(o.Tesseract)
		if o.Tesseract == "" {
			path, err = exec.LookPath("tesseract")
		}
		if err != nil {
			return "", plugin.Errorf(plugin.CodeDependencyMissing, "reading text from pictures needs tesseract, which is not installed here; install tesseract-ocr, or choose the OCR mode fallback or never")
		}
		return filepath.Abs(path)
	})}
}

// missing is why nothing can be read from pictures, nil if it can.
func (o *ocr) missing() error {
	_, err := o.program()
	return err
}

// image returns the text of one picture.
func (o *ocr) image(ctx context.Context, picture []byte) (Text, error) {
	p, err := o.picture(ctx, picture)
	if err != nil {
		return Text{}, err
	}
	return Text{Text: p.text, Method: "ocr", Engine: "tesseract", Confidence: p.confidence(), Details: map[string]any{"words": p.words, "languages": o.opts.Languages}}, nil
}

// pages returns the text of a PDF as OCR reads it.
func (x *Extractor) pages(ctx context.Context, f File) (Text, error) {
	if err := x.ocr.missing(); err != nil {
		return Text{}, err
	}
	var all seen
	pages := 0
	err := x.pool.pages(ctx, f, func(_, of int, picture []byte) error {
		p, err := x.ocr.picture(ctx, picture)
		if err != nil {
			return err
		}
		pages = of
		all.text += p.text + "\n\n"
		all.words, all.sum = all.words+p.words, all.sum+p.sum
		return nil
	})
	if err != nil {
		return Text{}, err
	}
	return Text{Text: all.text, Method: "ocr", Engine: "tesseract", Confidence: all.confidence(), Details: map[string]any{"pages": pages, "words": all.words, "languages": x.opts.Languages}}, nil
}

// A seen is what was read from pictures.
type seen struct {
	text  string
	words int
	sum   float64 // of the words' confidences, 0 to 100 each
}

func (s *seen) confidence() float64 {
	if s.words == 0 {
		return 0
	}
	return s.sum / float64(s.words) / 100
}

// picture runs tesseract on one picture.
func (o *ocr) picture(ctx context.Context, picture []byte) (seen, error) {
	program, err := o.program()
	if err != nil {
		return seen{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.opts.Timeout,
		&Refusal{Reason: Other, Code: plugin.CodeTimeout, Message: "the picture takes longer than " + o.opts.Timeout.String() + " to read"})
	defer cancel()
	read := append(programReads(program), existing("/usr", "/lib", "/lib64", "/bin")...)
	proc, stdin, stdout, scratch, err := o.opts.start(ctx, []string{program, "stdin", "stdout", "-l", o.opts.Languages, "tsv"}, read)
	if err != nil {
		return seen{}, plugin.Errorf(plugin.CodeLaunchFailed, "tesseract cannot be started: %w", err)
	}
	defer finish(proc, stdin, stdout, scratch)
	stop := context.AfterFunc(ctx, func() { _ = stdout.SetReadDeadline(time.Now()); _ = stdin.SetWriteDeadline(time.Now()) })
	defer stop()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.Copy(stdin, bytes.NewReader(picture))
		_ = stdin.Close()
	}()
	table, err := io.ReadAll(io.LimitReader(stdout, 8*MaxText+1))
	if err != nil {
		proc.Kill()
	}
	_ = stdin.SetWriteDeadline(time.Now())
	<-written
	switch {
	case ctx.Err() != nil:
		return seen{}, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) || len(table) > 8*MaxText:
		return seen{}, document.Refuse(document.TooLarge, "the picture gives more text than is kept")
	case err != nil:
		return seen{}, err
	}
	if state := proc.Wait(); !state.OK() {
		return seen{}, &Refusal{Reason: Unsupported, Code: plugin.CodeInvalidInput, Message: "tesseract cannot read the picture (" + state.String() + ")"}
	}
	return parseTable(string(table)), nil
}

// parseTable reads tesseract's TSV: a line for each block, paragraph, line and
// word, in columns level, page, block, paragraph, line, word, left, top, width,
// height, conf, text.
func parseTable(table string) seen {
	var s seen
	var b strings.Builder
	at := ""
	for line := range strings.Lines(table) {
		columns := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 12)
		if len(columns) != 12 || columns[0] != "5" {
			continue
		}
		confidence, err := strconv.ParseFloat(columns[10], 64)
		word := strings.TrimSpace(columns[11])
		if err != nil || confidence < 0 || word == "" {
			continue
		}
		paragraph, whole := strings.Join(columns[1:4], "."), strings.Join(columns[1:5], ".")
		switch {
		case at == "":
		case at == whole:
			b.WriteByte(' ')
		case strings.HasPrefix(at, paragraph+"."):
			b.WriteByte('\n')
		default:
			b.WriteString("\n\n")
		}
		at = whole
		b.WriteString(word)
		s.words++
		s.sum += confidence
	}
	s.text = b.String()
	return s
}
