package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
)

// A pty is a terminal of 40 columns, with all that arrived there.
type pty struct {
	ours, theirs *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	done chan struct{}
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check(err)
	fd := int(ours.Fd())
	check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(err)
	check(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(err)
	p := &pty{ours: ours, theirs: theirs, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for buf := make([]byte, 4096); ; {
			n, err := ours.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _, _ = theirs.Close(), ours.Close() })
	return p
}

// all closes the terminal and returns what arrived there.
func (p *pty) all() string {
	p.theirs.Close()
	<-p.done
	p.ours.Close()
	return p.seen.String()
}

// await waits until a text arrived.
func (p *pty) await(t *testing.T, text string) {
	t.Helper()
	testwait.Until(t, fmt.Sprintf("the terminal shows %q", text), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(p.seen.String(), text)
	})
}

// awaitQuiet waits until the terminal does not show what is typed.
func (p *pty) awaitQuiet(t *testing.T) {
	t.Helper()
	testwait.Until(t, "the terminal does not echo", func() bool {
		state, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO == 0
	})
}

func TestAStatusIsTakenAwayBeforeAnythingElseIsWritten(t *testing.T) {
	p := openPTY(t)
	s := NewScreen(p.theirs)
	s.Status("half \x1b[2J way")
	fmt.Fprintln(s, "a line")
	s.Status(strings.Repeat("long ", 20))
	s.Status("")
	s.DimStatus("less")
	got := p.all()
	blank := func(n int) string { return "\r" + strings.Repeat(" ", n) + "\r" }
	want := `half \x1b[2J way` + blank(16) + "a line\r\n" + strings.Repeat("long ", 20)[:38] + "…" + blank(39) + "\x1b[2mless\x1b[0m"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNothingIsRewrittenElsewhere(t *testing.T) {
	var b bytes.Buffer
	elsewhere := map[string]func() (*Screen, func() string){
		"no terminal": func() (*Screen, func() string) { return NewScreen(&b), b.String },
		"dumb terminal": func() (*Screen, func() string) {
			t.Setenv("TERM", "dumb")
			p := openPTY(t)
			return NewScreen(p.theirs), func() string { return strings.ReplaceAll(p.all(), "\r\n", "\n") }
		},
	}
	for name, open := range elsewhere {
		s, got := open()
		s.Status("half way")
		w := s.Watch("it runs")
		w.Hear(plugin.Event{Kind: plugin.EventProgress, Data: []byte(`{"message":"reading"}`)})
		w.Hear(plugin.Event{Kind: plugin.EventLog, Level: "warning", Message: "careful"})
		w.End()
		fmt.Fprintln(s, Dim(s, "a line"))
		if text := got(); text != "warning careful\na line\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestColourIsAskedOfTheEnvironment(t *testing.T) {
	p := openPTY(t)
	for _, c := range []struct{ term, none, want string }{
		{"xterm", "", "\x1b[2mtext\x1b[0m"}, {"xterm", "1", "text"}, {"dumb", "", "text"},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.none)
		if got := Dim(p.theirs, "text"); got != c.want {
			t.Errorf("TERM=%s NO_COLOR=%s: %q", c.term, c.none, got)
		}
		if got := Dim(io.Discard, "text"); got != "text" {
			t.Errorf("no terminal: %q", got)
		}
	}
}

func TestWorkThatTakesLongIsShown(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	synctest.Test(t, func(*testing.T) {
		s := NewScreen(p.theirs)
		s.Begin("short work").End()
		b := s.Begin("reading")
		b.Set("copying", Bytes(5<<20))
		<-time.After(Longest + time.Second/2)
		b.End()
	})
	if got := p.all(); !strings.Contains(got, "copying, 5 MiB, 2s") || strings.Contains(got, "short") || strings.Contains(got, "reading") || !strings.HasSuffix(got, "\r"+strings.Repeat(" ", 18)+"\r") {
		t.Errorf("%q", got)
	}
}

func TestAQuestionIsAnsweredAtATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed      string
		yes, known bool
	}{{"y\n", true, true}, {"YES\n", true, true}, {"no\n", false, true}, {"\n", false, true}, {"perhaps\n", false, false}} {
		p := openPTY(t)
		over, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if ready, err := Readable(over, p.theirs); ready || err != nil {
			t.Fatalf("readable before anything was typed: %v", err)
		}
		_, _ = p.ours.WriteString(c.typed)
		if ready, err := Readable(t.Context(), p.theirs); !ready || err != nil {
			t.Fatalf("not readable: %v", err)
		}
		line, err := Line(p.theirs)
		if yes, known := Agrees(line); err != nil || yes != c.yes || known != c.known {
			t.Errorf("%q: %v %v %v", c.typed, yes, known, err)
		}
	}
}

func TestASecretIsNotShown(t *testing.T) {
	t.Parallel()
	p := openPTY(t)
	got := make(chan string, 1)
	go func() {
		text, _ := Secret(p.theirs, p.theirs, "api_key")
		got <- text
	}()
	p.await(t, "(not shown): ")
	p.awaitQuiet(t)
	_, _ = p.ours.WriteString("hush\n")
	if text := <-got; text != "hush" {
		t.Errorf("got %q", text)
	}
	if shown := p.all(); strings.Contains(shown, "hush") {
		t.Errorf("%q", shown)
	}
}

func TestAPageTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	terminal := openPTY(t) // 24 lines of 40 cells
	p := NewPage(terminal.theirs)
	if !Is(p) || Width(p, 0) != 40 {
		t.Fatal("the page does not know its terminal")
	}
	show := func(text string) {
		fmt.Fprint(p, text)
		if err := p.Show(); err != nil {
			t.Fatal(err)
		}
	}
	show("one\n  two\n")
	show("one\n  two\n") // as it stands
	show(strings.Repeat("wide  ", 10) + "\n")
	show(strings.Repeat("line\n", 30))
	want := "\x1b[H\x1b[2Jone\x1b[K\r\n  two\x1b[K\r\n\x1b[J" +
		"\x1b[H" + strings.Repeat("wide  ", 10)[:39] + "…\x1b[K\r\n\x1b[J" +
		"\x1b[H" + strings.Repeat("line\x1b[K\r\n", 22) + "…\x1b[K\r\n\x1b[J"
	if got := terminal.all(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if NewPage(io.Discard) != nil {
		t.Error("a page without a terminal")
	}
}
