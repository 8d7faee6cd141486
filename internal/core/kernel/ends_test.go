package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Each row of the table in docs/architecture.md, with every code, for callers who
// wait and for those who do not.
func TestClaimedCallsEndAsTheTableSays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "### How a claimed call ends")
	section, rest, _ := strings.Cut(section, "Transient are ")
	rest, _, _ = strings.Cut(rest, ";")
	var passing []plugin.Code
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(rest, -1) {
		passing = append(passing, plugin.Code(m[1]))
	}
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(cells) != 4 || cells[0] == "The attempt" {
			continue
		}
		rows++
		for _, code := range everyCode {
			passes := slices.Contains(passing, code)
			if strings.Contains(cells[0], "transient") && !passes || strings.Contains(cells[0], "permanent") && passes {
				continue
			}
			if strings.Contains(cells[0], "not answered") && code == plugin.CodeCancelled && strings.Contains(cells[1], "remote service honours") {
				continue // one that was cancelled is not tried again: TestACallThatWasCancelledWhileItRanIsNotRunAgain
			}
			if own := strings.Contains(cells[0], "closed"); own != (code == plugin.CodeUnavailable) && (own || strings.Contains(cells[0], "not answered, and is `brokered`") && (cells[1] == "none" || cells[1] == "answered")) {
				continue
			}
			if strings.Contains(cells[0], "refused a service") && code != plugin.CodeInternal {
				continue
			}
			if strings.Contains(cells[0], "lost its caller") && code != plugin.CodeCancelled {
				continue
			}
			for i, waits := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, %s, waits %t", cells[0], cells[1], code, waits), func(t *testing.T) {
					t.Parallel()
					checkEnd(t, cells[0], cells[1], code, waits, cells[2+i])
				})
			}
		}
	}
	if rows != 17 {
		t.Errorf("the table has %d rows", rows)
	}
}

func checkEnd(t *testing.T, attempt, effects string, code plugin.Code, waits bool, want string) {
	m := newMailbox(t)
	change := []func(*plugin.Target){func(t *plugin.Target) { t.Operation.Brokered = !strings.Contains(attempt, "not `brokered`") }}
	if strings.Contains(effects, "remote service honours") {
		change = append(change, keyed)
	}
	if strings.HasPrefix(effects, "unanswered") {
		m.hangUp = 1
	}
	f := &failing{with: fmt.Errorf("%w: %w", store.ErrFull, syscall.ENOSPC)}
	b, _ := senderOn(t, m, func(st store.Store) store.Store { f.Store = st; return f }, change...)
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if effects != "none" {
			_, _ = s.Serve(ctx, "http.fetch", json.RawMessage(`{"method":"POST","url":"http://mail.example.com/","body":"mail"}`))
		}
		if strings.HasPrefix(attempt, "was refused a service") { // and says of that what it likes
			f.at.Store(1)
			_, err := s.Serve(ctx, "http.fetch", json.RawMessage(`{"method":"POST","url":"http://mail.example.com/","body":"more"}`))
			f.at.Store(0)
			if plugin.CodeOf(err) != plugin.CodeInternal {
				t.Errorf("the full disk refused it with %v", err)
			}
			return plugin.Result{}, plugin.Errorf(plugin.CodePluginError, "its own error")
		}
		switch failure := plugin.Errorf(code, "it ended so"); {
		case strings.HasPrefix(attempt, "reached no plugin"):
			return plugin.Result{}, said{failure, false}
		case strings.HasPrefix(attempt, "lost its caller"):
			return plugin.Result{}, said{context.Canceled, true}
		case strings.HasPrefix(attempt, "was answered"):
			return plugin.Result{}, plugin.Errorf(plugin.CodePluginError, "its own error")
		default:
			return plugin.Result{}, said{failure, true}
		}
	}
	call := asking("mail/send", `{}`)
	call.Key, call.NoWait = "once", !waits
	res, err := b.Call(t.Context(), call)
	if waits && want == string(store.CallUnknown) && strings.HasPrefix(attempt, "was refused a service") && plugin.CodeOf(err) != plugin.CodeOutcomeUnknown {
		t.Errorf("its caller hears %v", err) // not what the plugin made of it
	}
	if !waits {
		if err != nil {
			t.Fatal(err)
		}
		_, _ = b.Resume(t.Context(), "local", res.CallID)
	}
	rows, err := b.store.Calls(t.Context(), store.CallFilter{Tenant: "local"})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d calls, %v", len(rows), err)
	}
	got := string(rows[0].State)
	if rows[0].Key != "k:once" {
		got += ", key free"
	}
	if got != want {
		t.Errorf("it is %s (%s); the table says %s", got, rows[0].Code, want)
	}
}
