package notify

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/store"
)

// A book is a log that may be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// telling returns a notifier that runs a shell script, and its log.
func telling(t *testing.T, script string) (*Notifier, *book) {
	t.Helper()
	log := &book{}
	n := New([]string{"/bin/sh", "-c", script}, t.TempDir(), nil, slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { _ = n.Close() })
	return n, log
}

func aPlan() *approval.Asked {
	return approval.New(approval.Question{
		Tenant: "local", SubjectKind: store.SubjectPlan, SubjectID: "p1", Requester: "ann", Why: "step one: it sends",
		Preview: json.RawMessage(`{"steps":[]}`), At: time.Now(), Expires: time.Now().Add(time.Hour),
	})
}

func TestApproversHearOfAQuestionWithItsToken(t *testing.T) {
	t.Parallel()
	n, log := telling(t, "cat > told")
	asked := aPlan()
	n.Plan(t.Context(), asked)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(n.dir, "told"))
	if err != nil {
		t.Fatalf("%v; %s", err, log)
	}
	var told notice
	if err := json.Unmarshal(raw, &told); err != nil {
		t.Fatal(err)
	}
	if told.ID != asked.Row.ID || told.Token != asked.Token || told.SubjectKind != "plan" || told.Subject != "p1" || told.Requester != "ann" || string(told.Preview) != `{"steps":[]}` {
		t.Errorf("%s", raw)
	}
	if approval.HashToken(told.Token) != asked.Row.TokenHash {
		t.Error("the token is not the one that answers")
	}
}

func TestACommandThatHangsIsKilledWithWhatItStarted(t *testing.T) {
	t.Parallel()
	n, log := telling(t, "sleep 100000 & echo it hangs >&2; echo $! > started; mv started pid; wait")
	n.limit = time.Hour
	n.Plan(t.Context(), aPlan()) // returns while the command hangs
	var raw []byte
	testwait.Until(t, "the command has started a process", func() (ok bool) {
		var err error
		raw, err = os.ReadFile(filepath.Join(n.dir, "pid"))
		return err == nil
	})
	n.stop() // as the end of the limit does
	n.done.Wait()
	if !strings.Contains(log.String(), "approvals.notify failed") || !strings.Contains(log.String(), "it hangs") {
		t.Errorf("the log says %s", log)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the process that the command started has ended", func() bool { return !alive.Process(pid) })
}

func TestACommandHasALimit(t *testing.T) {
	t.Parallel()
	n, log := telling(t, "sleep 100000")
	n.limit = 100 * time.Millisecond
	n.Plan(t.Context(), aPlan())
	n.done.Wait()
	if !strings.Contains(log.String(), "approvals.notify failed") {
		t.Errorf("the log says %s", log)
	}
}

func TestQuestionsThatCannotBeToldDoNotPileUp(t *testing.T) {
	t.Parallel()
	n, log := telling(t, "echo started >> started; exec sleep 100000")
	n.limit = time.Hour
	for range maxWaiting + 2*atOnce {
		n.Plan(t.Context(), aPlan())
	}
	if !strings.Contains(log.String(), "too many questions wait") {
		t.Error("none was left out")
	}
	started := func() int {
		raw, _ := os.ReadFile(filepath.Join(n.dir, "started"))
		return bytes.Count(raw, []byte("\n"))
	}
	testwait.Until(t, "as many commands run as may", func() bool { return started() == atOnce })
	n.limit = time.Millisecond        // no command starts meanwhile
	if err := n.Close(); err != nil { // does not wait for the commands
		t.Fatal(err)
	}
	n.Plan(t.Context(), aPlan()) // after the end it is left out, and nothing starts
	n.done.Wait()
	if got := started(); got != atOnce {
		t.Errorf("%d commands were started, want %d", got, atOnce)
	}
}
