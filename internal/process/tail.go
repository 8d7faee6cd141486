package process

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of what is kept of a plugin's stderr.
const (
	tailBytes = 64 << 10
	lineBytes = 8 << 10
)

// Who writes more than floodBytes to stderr within floodTime waits for the rest
// of it: taking in a flood must not keep the host from its other plugins.
const (
	floodBytes = 256 << 10
	floodTime  = 20 * time.Millisecond
)

// A tail keeps the last lines of a plugin's stderr.
type tail struct {
	mu    sync.Mutex
	lines []string
	size  int
}

// readFrom reads lines to the end of r, keeps the last of them and tells each
// to log. A long line is cut; the rest of it is passed over.
func (t *tail) readFrom(r io.Reader, log func(line string)) {
	buf := bufio.NewReaderSize(&slow{r: r}, lineBytes)
	for {
		chunk, err := buf.ReadSlice('\n')
		if len(chunk) > 0 {
			line := printable(strings.TrimRight(string(chunk), "\r\n"))
			t.add(line)
			log(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = buf.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// A slow reader bounds how much is read at a time.
type slow struct {
	r     io.Reader
	begun time.Time // of what is counted
	read  int
}

// Read reads as r does, once it is time.
func (s *slow) Read(b []byte) (int, error) {
	switch elapsed := time.Since(s.begun); {
	case elapsed >= floodTime:
		s.begun, s.read = time.Now(), 0
	case s.read >= floodBytes:
		time.Sleep(floodTime - elapsed)
		s.begun, s.read = time.Now(), 0
	}
	n, err := s.r.Read(b)
	s.read += n
	return n, err
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.size += len(line) + 1
	for t.size > tailBytes && len(t.lines) > 1 {
		t.size -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
}

// last returns the last n lines that say something, joined by " | ".
func (t *tail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	for i := len(t.lines) - 1; i >= 0 && len(words) < n; i-- {
		if line := strings.TrimSpace(t.lines[i]); line != "" {
			words = append([]string{cut(line, 400)}, words...)
		}
	}
	return strings.Join(words, " | ")
}

// printable returns text as valid UTF-8 without control characters: what a
// plugin writes cannot steer a terminal or forge a line of a log.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError, r < ' ', r >= 0x7f && r < 0xa0:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut returns at most n bytes of text, whole characters only.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}
