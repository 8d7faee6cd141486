package terminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/mortise-dev/mortise/plugin"
)

// longestLine is the longest line that a terminal passes on at once.
const longestLine = 4096

// Readable waits until something can be read from a file, and reports that it can; or until
// ctx ends. It reads nothing, so another reader may ask something in between.
func Readable(ctx context.Context, f *os.File) (bool, error) {
	if ctx.Err() != nil {
		return false, nil
	}
	wakes, wake, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer wakes.Close()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(woken); _ = wake.Close() })
	defer func() {
		if stop() {
			_ = wake.Close()
			return
		}
		<-woken
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}, {Fd: int32(wakes.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		default:
			return fds[0].Revents != 0, nil
		}
	}
}

// Line reads the line that was typed at a terminal. The error is io.EOF at its end.
func Line(f *os.File) (string, error) {
	line := make([]byte, longestLine)
	n, err := f.Read(line)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return string(line[:n]), err
}

// Agrees reads an answer to a question that ends with [y/N]. known is false for a text
// that is no answer.
func Agrees(line string) (yes, known bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, true
	case "n", "no", "":
		return false, true
	}
	return false, false
}

// Confirm asks until the answer is yes or no. No answer at all is a no.
func Confirm(ctx context.Context, answers *bufio.Reader, out io.Writer, question string) (bool, error) {
	for {
		fmt.Fprintf(out, "\n%s [y/N] ", Safe(question))
		line, err := answers.ReadString('\n')
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		yes, known := Agrees(line)
		if known || err != nil {
			return yes && err == nil, nil
		}
		fmt.Fprint(out, "Please answer y or n.")
	}
}

// Secret asks for a text that is not shown.
func Secret(in *os.File, out io.Writer, what string) (string, error) {
	fmt.Fprintf(out, "%s (not shown): ", Safe(what))
	raw, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(out)
	return string(raw), err
}

// maxLine bounds what [Phrase] reads, in bytes.
const maxLine = 4096

// Phrase asks for a text without showing it at a terminal, and reads it as the one line of in
// otherwise. It has no blanks; the error says so.
func Phrase(in io.Reader, out io.Writer, what string) (string, error) {
	if f, ok := in.(*os.File); ok && Is(f) {
		return Secret(f, out, what)
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxLine))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsAny(text, " \n\t") {
		return "", fmt.Errorf("standard input is one line, %s", what)
	}
	return text, nil
}

// Lines are what is typed, line by line. Nothing is read from a terminal before a
// line is there, so that others may ask something in between.
type Lines struct {
	In   io.Reader
	Most int // bytes of a line

	kept []byte
	end  error // why there is no more
}

// Next returns the next line. The error is io.EOF once there are no more, and
// that of ctx once it has ended.
func (l *Lines) Next(ctx context.Context) (string, error) {
	for {
		if at := bytes.IndexByte(l.kept, '\n'); at >= 0 {
			line := string(l.kept[:at])
			l.kept = l.kept[at+1:]
			return line, nil
		}
		switch {
		case len(l.kept) > l.Most:
			return "", plugin.Errorf(plugin.CodeInputTooLarge, "a message has at most %d bytes", l.Most)
		case l.end != nil && len(l.kept) > 0:
			line := string(l.kept)
			l.kept = nil
			return line, nil
		case l.end != nil:
			return "", l.end
		}
		if err := l.wait(ctx); err != nil {
			return "", err
		}
		buf := make([]byte, longestLine)
		n, err := l.In.Read(buf)
		l.kept = append(l.kept, buf[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("reading what is typed: %w", err)
		}
		l.end = err
	}
}

// wait returns once there is something to read, or its context has ended.
func (l *Lines) wait(ctx context.Context) error {
	file, isFile := l.In.(*os.File)
	if isFile {
		if _, err := Readable(ctx, file); err != nil {
			return fmt.Errorf("waiting for what is typed: %w", err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
