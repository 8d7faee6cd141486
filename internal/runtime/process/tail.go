package process

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Bounds of what is kept of a plugin's stderr.
const (
	tailBytes = 64 << 10
	lineBytes = 8 << 10
	maxEarly  = 1000 // lines before the handshake that go to the log
)

// A tail keeps the last lines of a plugin's stderr. Until the plugin has shaken
// hands it is read as fast as it comes: who writes much at the start, such as
// warnings of what is imported, would else be late with the handshake.
type tail struct {
	shaken atomic.Bool
	idle   atomic.Bool // every line read was passed on, and the reader waits for more

	mu    sync.Mutex
	lines []string
	size  int
}

// readFrom reads lines to the end of r, keeps the last of them and tells each
// to log. A long line is cut; the rest of it is passed over.
func (t *tail) readFrom(r io.Reader, log func(line string)) {
	paced := &pacedReader{r: idleReader{r, &t.idle}, free: func() bool { return !t.shaken.Load() }}
	early := 0
	buf := bufio.NewReaderSize(paced, lineBytes)
	for {
		chunk, err := buf.ReadSlice('\n')
		if len(chunk) > 0 {
			line := printable(strings.TrimRight(string(chunk), "\r\n"))
			t.add(line)
			switch {
			case t.shaken.Load():
				log(line)
			case early < maxEarly: // what comes then is in the tail alone
				early++
				log(line)
			}
			paced.took(paceText)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = buf.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// An idleReader says whether its reader is being waited for.
type idleReader struct {
	io.Reader
	idle *atomic.Bool
}

func (r idleReader) Read(b []byte) (int, error) {
	r.idle.Store(true)
	n, err := r.Reader.Read(b)
	r.idle.Store(err != nil) // at its end nothing more is passed on
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

// pythonFrame is a line of a Python traceback.
var pythonFrame = pattern.New(`^\s*File "([^"]+)", line (\d+)`)

// cause returns what standard error says about why the process ended: file, line
// and error of a Python traceback, or else the last three lines.
func (t *tail) cause() string {
	t.mu.Lock()
	var place, last string
	for _, line := range t.lines {
		if at := pythonFrame.FindStringSubmatch(line); at != nil {
			place, last = at[1]+":"+at[2], ""
		} else if strings.TrimSpace(line) != "" {
			last = line
		}
	}
	t.mu.Unlock()
	if place == "" || last == "" || last[0] == ' ' || !strings.Contains(last, "Error") && !strings.Contains(last, "Exception") {
		return t.last(3)
	}
	return cut(place, 400) + ": " + cut(last, 400)
}

// printable returns text as valid UTF-8 without control characters: what a
// plugin writes cannot steer a terminal or forge a line of a log.
func printable(text string) string {
	if plain(text) { // most lines are: a flood of them must cost little
		return text
	}
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

// plain reports whether text is ASCII without control characters.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
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
