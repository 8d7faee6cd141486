// Package notify tells approvers of what waits for them, by a command that the
// configuration names.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is told to approvers.
const (
	runTime      = 10 * time.Second // for one run of the command
	maxWaiting   = 256              // questions that wait to be told
	atOnce       = 4                // runs of the command at a time
	maxComplaint = 2 << 10          // bytes of what it complains of that are logged
)

// A notice is what the command hears of a question.
type notice struct {
	ID          string          `json:"id"`
	Token       string          `json:"token"` // answers the question: for approvers alone
	Tenant      string          `json:"tenant"`
	SubjectKind string          `json:"subject_kind"`
	Subject     string          `json:"subject"`
	Operation   string          `json:"operation"` // plugin/operation of a call; "" of a plan
	Requester   string          `json:"requester"`
	Why         string          `json:"why"`
	Preview     json.RawMessage `json:"preview"`
	ExpiresAt   time.Time       `json:"expires_at"`
}

// Calls are the calls that approvals are for.
type Calls interface {
	Call(ctx context.Context, tenant, id string) (*ledger.CallRow, error)
}

// A Notifier notifies approvers of pending approvals, by a command that the
// configuration names. Callers do not wait for it. Up to atOnce
// goroutines belong to it; all have ended when Close returns.
type Notifier struct {
	command []string
	dir     string
	calls   Calls
	limit   time.Duration // of one run of the command, and of Close
	log     *slog.Logger

	ctx   context.Context
	stop  context.CancelFunc
	queue chan notice
	done  sync.WaitGroup

	mu      sync.Mutex // guards the two below
	workers int
	closed  bool
}

// New returns a notifier that runs command in dir. Where the command is
// empty it does nothing.
func New(command []string, dir string, calls Calls, log *slog.Logger) *Notifier {
	n := &Notifier{command: command, dir: dir, calls: calls, limit: runTime, log: log, queue: make(chan notice, maxWaiting)}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// Call lets approvers hear of a call that waits.
func (n *Notifier) Call(a *approval.Asked, _ *plugin.Call) { n.asked(a) }

// Plan lets approvers hear of a plan that waits.
func (n *Notifier) Plan(_ context.Context, a *approval.Asked) { n.asked(a) }

// asked lets approvers hear of a question.
func (n *Notifier) asked(a *approval.Asked) {
	if len(n.command) == 0 {
		return
	}
	row := &a.Row
	told := notice{
		ID: row.ID, Token: a.Token, Tenant: row.Tenant, SubjectKind: row.SubjectKind, Subject: row.SubjectID,
		Requester: row.Requester, Why: row.Why, Preview: a.Preview, ExpiresAt: row.ExpiresAt.UTC(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		select {
		case n.queue <- told:
			if n.workers < atOnce {
				n.workers++
				n.done.Go(n.work)
			}
			return
		default:
		}
	}
	n.log.Error("approvers could not be told: too many questions wait for approvals.notify", "approval", row.ID, row.SubjectKind, row.SubjectID)
}

// work tells what waits, until there is nothing more.
func (n *Notifier) work() {
	for {
		select {
		case told := <-n.queue:
			n.tell(told)
			continue
		default:
		}
		n.mu.Lock()
		if len(n.queue) == 0 { // nothing is added while this is locked
			n.workers--
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
	}
}

// tell runs the command once.
func (n *Notifier) tell(told notice) {
	ctx, cancel := context.WithTimeout(n.ctx, n.limit)
	defer cancel()
	if told.SubjectKind == approval.SubjectCall {
		row, err := n.calls.Call(ctx, told.Tenant, told.Subject)
		if err != nil || row == nil {
			n.log.Error("approvers could not be told: the call that waits cannot be read", "approval", told.ID, "call", told.Subject, "cause", fmt.Sprint(err))
			return
		}
		told.Operation = row.Operation
	}
	input, err := json.Marshal(told)
	if err != nil {
		panic(err) // the preview was read as JSON before
	}
	cmd := exec.CommandContext(ctx, n.command[0], n.command[1:]...)
	cmd.Dir, cmd.Stdin = n.dir, bytes.NewReader(append(input, '\n'))
	complaint := &tail{most: maxComplaint}
	cmd.Stderr = complaint
	// What the command started goes with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		n.log.Error("approvers could not be told: approvals.notify failed", "approval", told.ID, told.SubjectKind, told.Subject,
			"command", n.command[0], "cause", err.Error(), "said", complaint.String())
	}
}

// Close waits for what is being told, as long as one run of the command may
// take.
func (n *Notifier) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	over := time.AfterFunc(n.limit, n.stop)
	defer over.Stop()
	n.done.Wait()
	n.stop()
	return nil
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return string(bytes.ToValidUTF8(bytes.TrimSpace(t.kept), []byte("\uFFFD")))
}
