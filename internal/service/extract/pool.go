package extract

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/extract/document"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of a worker.
const (
	maxFiles    = 500             // after which another takes its place
	maxIdle     = 2 * time.Minute // without a file
	compileTime = time.Minute
	endTime     = 2 * time.Second
)

// A pool keeps one worker, from its first file until it has been idle for a
// while. Files are read one at a time: each caller waits for its turn.
type pool struct {
	opts Options
	turn chan struct{} // holds one token; its holder may use the fields below

	command  []string // starts a worker; nil until one was started
	running  *running // nil where none is
	idle     *time.Timer
	compiled bool // what can be compiled is, or cannot be
	closed   bool
}

// A running is a worker that was started.
type running struct {
	proc    *sandbox.Process
	stdin   *os.File
	stdout  *os.File
	scratch string
	files   int
}

func newPool(o Options) *pool {
	p := &pool{opts: o, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// take waits for the worker's turn; give ends it.
func (p *pool) take(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.closed {
		p.turn <- struct{}{}
		return plugin.Errorf(plugin.CodeUnavailable, "the host is closing")
	}
	if p.idle != nil {
		p.idle.Stop()
	}
	return nil
}

func (p *pool) give() {
	if p.running != nil {
		p.idle = time.AfterFunc(maxIdle, p.rest)
	}
	p.turn <- struct{}{}
}

// rest ends a worker that has been idle for a while.
func (p *pool) rest() {
	select {
	case <-p.turn:
		p.end()
		p.turn <- struct{}{}
	default: // it is in use
	}
}

// text has a file read.
func (p *pool) text(ctx context.Context, kind string, f File) (Text, error) {
	if err := p.take(ctx); err != nil {
		return Text{}, err
	}
	defer p.give()
	answer, body, err := p.ask(ctx, document.Request{Kind: kind, MIME: f.MIME}, f.Data)
	if err != nil {
		return Text{}, err
	}
	if answer.Details == nil {
		answer.Details = map[string]any{}
	}
	return Text{Text: string(body), Kind: answer.Kind, Title: answer.Title, Method: answer.Method, Engine: answer.Engine, Confidence: answer.Confidence, Details: answer.Details}, nil
}

// pages calls do with a picture of each page of a PDF. Between two of them the
// worker may be another's.
func (p *pool) pages(ctx context.Context, f File, do func(n, of int, picture []byte) error) error {
	for n, of := 0, 1; n < of; n++ {
		picture, pages, err := p.page(ctx, f, n)
		if err != nil {
			return err
		}
		if of = pages; of > maxPages {
			return document.Refuse(document.TooLarge, "the PDF has %d pages; at most %d are read by OCR", of, maxPages)
		}
		if n < of {
			if err := do(n, of, picture); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pool) page(ctx context.Context, f File, n int) ([]byte, int, error) {
	if err := p.take(ctx); err != nil {
		return nil, 0, err
	}
	defer p.give()
	answer, picture, err := p.ask(ctx, document.Request{Kind: document.PDF, Draw: true, Page: n}, f.Data)
	return picture, answer.Pages, err
}

// ask gives the worker a file. It is ended if it does not answer as it should.
func (p *pool) ask(ctx context.Context, a document.Request, data []byte) (document.Response, []byte, error) {
	if err := p.ready(); err != nil {
		return document.Response{}, nil, err
	}
	if a.Kind == document.PDF {
		p.compile(ctx)
	}
	w, err := p.worker(ctx)
	if err != nil {
		return document.Response{}, nil, err
	}
	deadline := time.Now().Add(p.opts.Timeout)
	stop := context.AfterFunc(ctx, func() { _ = w.stdout.SetReadDeadline(time.Now()); _ = w.stdin.SetWriteDeadline(time.Now()) })
	_ = w.stdin.SetWriteDeadline(deadline)
	_ = w.stdout.SetReadDeadline(deadline)
	if ctx.Err() != nil { // and so stop may have come before the two above
		_ = w.stdout.SetReadDeadline(time.Now())
	}
	var answer document.Response
	err = document.Send(w.stdin, a, data)
	var body []byte
	if err == nil {
		body, err = document.Receive(w.stdout, &answer, 2*MaxText)
	}
	stop()
	if err != nil {
		return document.Response{}, nil, p.failed(ctx, w, a.Kind, err)
	}
	if w.files++; w.files >= maxFiles {
		p.end()
	}
	switch {
	case answer.Refusal != nil:
		return document.Response{}, nil, answer.Refusal
	case answer.Failure != "":
		p.end()
		return document.Response{}, nil, plugin.Errorf(plugin.CodeUnavailable, "the worker that reads documents: %.500s", answer.Failure)
	}
	return answer, body, nil
}

// failed says why a worker did not answer, and ends it.
func (p *pool) failed(ctx context.Context, w *running, kind string, cause error) error {
	late := errors.Is(cause, os.ErrDeadlineExceeded)
	if !late { // it has ended, or is about to
		select {
		case <-w.proc.Done():
		case <-time.After(endTime):
		}
	}
	exceeded := w.proc.Exceeded()
	p.end()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exceeded == sandbox.LimitMemory:
		return &Refusal{Reason: TooLarge, Code: plugin.CodeLimitExceeded, Message: fmt.Sprintf("the %s takes more than %d MiB of memory to read", kind, p.opts.Memory>>20)}
	case late:
		return &Refusal{Reason: Other, Code: plugin.CodeTimeout, Message: fmt.Sprintf("the %s takes longer than %s to read", kind, p.opts.Timeout)}
	default:
		return &Refusal{Reason: Other, Code: plugin.CodeCrashed, Message: fmt.Sprintf("reading the %s ended the process that did it", kind)}
	}
}

func notStarted(err error) error {
	return plugin.Errorf(plugin.CodeLaunchFailed, "the worker that reads documents cannot be started: %w", err)
}

// ready finds the program of workers, once.
func (p *pool) ready() error {
	switch {
	case p.command != nil:
		return nil
	case p.opts.Sandbox == nil:
		return notStarted(errors.New("this host has no sandbox for it"))
	case len(p.opts.Command) > 0:
		p.command = p.opts.Command
		return nil
	}
	program, err := unpack(p.opts.Dir)
	if err != nil {
		return notStarted(err)
	}
	p.command = []string{program}
	return nil
}

// worker returns the worker, and starts it if need be.
func (p *pool) worker(ctx context.Context) (*running, error) {
	if p.running != nil {
		select {
		case <-p.running.proc.Done(): // it was ended from outside
			p.end()
		default:
			return p.running, nil
		}
	}
	argv := append(append([]string{}, p.command...), p.opts.Dir, strconv.FormatInt(p.opts.Memory, 10))
	read := append(programReads(argv[0]), existing(p.opts.Dir)...)
	proc, stdin, stdout, scratch, err := p.opts.start(ctx, argv, read)
	if err != nil {
		return nil, notStarted(err)
	}
	p.running = &running{proc: proc, stdin: stdin, stdout: stdout, scratch: scratch}
	return p.running, nil
}

// start starts a program in a cage, with pipes.
func (o *Options) start(ctx context.Context, argv, read []string) (proc *sandbox.Process, stdin, stdout *os.File, scratch string, err error) {
	if scratch, err = os.MkdirTemp(o.Scratch, "x-"); err != nil {
		return nil, nil, nil, "", err
	}
	if real, err := filepath.EvalSymlinks(scratch); err == nil { // as the program sees it
		scratch = real
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
		if err != nil {
			_ = rmtree.Remove(scratch)
		}
	}()
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, "", err
	}
	files = append(files, theirIn)
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		files = append(files, stdin)
		return nil, nil, nil, "", err
	}
	files = append(files, theirOut)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		files = append(files, stdin, stdout)
		return nil, nil, nil, "", err
	}
	files = append(files, null)
	proc, err = o.Sandbox.Start(ctx, sandbox.Spec{
		Argv: argv, Read: read, Hide: o.Hide, Scratch: scratch,
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC", "HOME=" + scratch, "TMPDIR=" + scratch, "OMP_THREAD_LIMIT=1"},
		Limits: sandbox.Limits{Memory: o.Memory, Scratch: 256 << 20, FileSize: 256 << 20, Processes: 64, OpenFiles: 64},
	}, sandbox.Files{Stdin: theirIn, Stdout: theirOut, Stderr: null})
	if err != nil {
		files = append(files, stdin, stdout)
		return nil, nil, nil, "", err
	}
	return proc, stdin, stdout, scratch, nil
}

// end ends the worker, if there is one.
func (p *pool) end() {
	if p.running == nil {
		return
	}
	w := p.running
	p.running = nil
	if p.idle != nil {
		p.idle.Stop()
	}
	finish(w.proc, w.stdin, w.stdout, w.scratch)
}

// finish ends a program and removes what it had.
func finish(proc *sandbox.Process, stdin, stdout *os.File, scratch string) {
	_ = stdin.Close()
	proc.Kill()
	select {
	case <-proc.Done():
		proc.Release()
	case <-time.After(endTime): // leave it to the kernel
	}
	_ = stdout.Close()
	_ = rmtree.Remove(scratch)
}

// close ends the worker for good. It may be called again.
func (p *pool) close() error {
	<-p.turn
	p.closed = true
	p.end()
	p.turn <- struct{}{}
	return nil
}

// compile makes sure that PDFium is compiled once for all later workers. If
// that fails, each worker compiles it again.
func (p *pool) compile(ctx context.Context) {
	if p.compiled || p.opts.Dir == "" {
		return
	}
	mark := filepath.Join(p.opts.Dir, "compiled-"+Version)
	if _, err := os.Stat(mark); err == nil {
		p.compiled = true
		return
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	if os.MkdirAll(p.opts.Dir, 0o700) != nil {
		return
	}
	p.end() // it was shown the directory as it was
	argv := append(append([]string{}, p.command...), document.Compile, p.opts.Dir)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"TMPDIR=" + p.opts.Dir}
	if cmd.Run() == nil {
		_ = os.WriteFile(mark, nil, 0o600)
	}
	p.compiled = !errors.Is(ctx.Err(), context.Canceled) // what failed once is not tried for every file
}

// programReads is what a program has to read of the machine to start.
func programReads(program string) []string {
	reads := []string{program}
	f, err := elf.Open(program)
	if err != nil {
		return reads
	}
	defer f.Close()
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP { // it has libraries
			return append(reads, existing("/lib", "/lib64", "/usr/lib", "/usr/lib64")...)
		}
	}
	return reads
}

func existing(paths ...string) []string {
	var found []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

var _ io.Closer = (*Extractor)(nil)
