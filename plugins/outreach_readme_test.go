package plugins_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// A reader does what README.md of the set says, line by line, in a folder that
// has plugins/outreach as the repository has. Three things are another way:
// the receiver gets a port of its own, what Go builds is there already, and ID
// and CALL stand for what was printed.
type reader struct {
	*testing.T
	root, port string
	env        []string
	receiver   *exec.Cmd
	heard      chan string // what the receiver prints
	plan       string
}

// TestOutreachReadme runs every command of the page.
func TestOutreachReadme(t *testing.T) {
	t.Parallel()
	needs(t, "python3", "node")
	bin := t.TempDir()
	if err := os.Symlink(testinput.Host(t), filepath.Join(bin, "mortise")); err != nil {
		t.Fatal(err)
	}
	r := &reader{T: t, root: t.TempDir(), port: "0"}
	r.env = []string{"HOME=" + t.TempDir(), "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "MORTISE_HOME=" + filepath.Join(r.root, ".mortise/outreach")}
	copySet(t, filepath.Join(r.root, "plugins/outreach"), receiver)
	t.Cleanup(r.end)
	page, err := os.ReadFile("outreach/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		lines := strings.Split(strings.TrimSpace(found[2]), "\n")
		switch found[1] {
		case "text":
			r.printed(lines)
		case "sh", "sh exit=9":
			for i, line := range lines {
				want := 0
				if i == len(lines)-1 && found[1] == "sh exit=9" {
					want = 9
				}
				r.do(line, want)
			}
		default:
			t.Errorf("no test runs blocks of %s", found[1])
		}
	}
	for _, folder := range []string{"mails", "lost"} {
		// The checks have sent others since, to the second folder.
		if sent := r.do("grep -l '^Subject: Question about' .mortise/"+folder+"/*.eml | wc -l", 0); strings.TrimSpace(sent) != "1" {
			t.Errorf("%s mails of the plan are in %s", sent, folder)
		}
	}
	if out := r.do("mortise plans list --state succeeded", 0); strings.Count(out, "Switchboard/Switchboard") != 2 {
		t.Errorf("the plans that succeeded are\n%s", out)
	}
}

// do does one line, which has to end with a status, and returns its output.
func (r *reader) do(line string, want int) string {
	r.Helper()
	switch {
	case line == "":
		return ""
	case strings.HasSuffix(line, "&"):
		r.start(strings.Fields(strings.TrimSuffix(line, "&")))
		return ""
	case strings.HasPrefix(line, "go build "):
		line = "test -x " + strings.Fields(line)[3]
	}
	if regexp.MustCompile(`\bCALL\b`).MatchString(line) {
		call := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(r.do("mortise calls list --unknown", 0))
		line = regexp.MustCompile(`\bCALL\b`).ReplaceAllString(line, call)
	}
	line = regexp.MustCompile(`\bID\b`).ReplaceAllString(line, r.plan)
	cmd := exec.CommandContext(r.Context(), "sh", "-euc", line)
	cmd.Dir, cmd.Env = r.root, r.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != want {
		r.Fatalf("%s\nends with %v, not %d:\n%s", line, err, want, out)
	}
	if found := regexp.MustCompile(`(?m)^plan +(\S+)$`).FindStringSubmatch(string(out)); found != nil {
		r.plan = found[1]
	}
	return string(out)
}

// start starts the receiver as a line says, in the place of one that runs.
func (r *reader) start(words []string) {
	r.Helper()
	r.end()
	r.receiver = exec.Command(words[0], append(words[1:], "--port", r.port)...)
	r.receiver.Dir, r.receiver.Env = r.root, r.env
	out, err := r.receiver.StdoutPipe()
	if err == nil {
		err = r.receiver.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	heard := make(chan string, 100)
	r.heard = heard
	go func() { // until the receiver has ended
		defer close(heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case heard <- lines.Text():
			default:
			}
		}
	}()
	first := r.next()
	var folder string
	if _, err := fmt.Sscanf(first, "listening on 127.0.0.1:%s mails go to %s", &r.port, &folder); err != nil {
		r.Fatalf("the receiver says %q: %v", first, err)
	}
	r.port = strings.TrimSuffix(r.port, ";")
	copySet(r.T, filepath.Join(r.root, "plugins/outreach"), "127.0.0.1:"+r.port)
}

// next is the next line that the receiver prints.
func (r *reader) next() string {
	r.Helper()
	select {
	case line := <-r.heard:
		return line
	case <-time.After(20 * time.Second):
		r.Fatal("the receiver prints nothing")
		return ""
	}
}

// printed holds the receiver to what the page says that it prints.
func (r *reader) printed(lines []string) {
	r.Helper()
	for _, want := range lines {
		if got := r.next(); got != want {
			r.Errorf("the receiver prints %q, not %q", got, want)
		}
	}
}

// end ends the receiver that runs, if one does.
func (r *reader) end() {
	if r.receiver == nil {
		return
	}
	_ = r.receiver.Process.Signal(syscall.SIGTERM)
	for range r.heard { // until nothing more comes
	}
	_ = r.receiver.Wait() // it was told to end
	r.receiver = nil
}
