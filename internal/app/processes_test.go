package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/store"
)

// advancing is set in a process that advances a schedule at the times it reads.
const advancing = "MORTISE_TEST_ATTEND"

// Two processes on one SQLite database, each as sure as the other that a time
// has come, make one run of it (M16).
func TestTwoProcessesMakeOneRunOfATime(t *testing.T) {
	t.Parallel()
	if home := os.Getenv(advancing); home != "" {
		advance(t, home)
		return
	}
	home := t.TempDir()
	a := open(t, home)
	register(t, a, upper(t), true)
	made, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{
		Owner: a.Principal, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1m",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	type process struct {
		to   io.WriteCloser
		from *bufio.Reader
	}
	var all []process
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesMakeOneRunOfATime$")
		cmd.Env = append(os.Environ(), advancing+"="+home)
		cmd.Stderr = os.Stderr
		to, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		from, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p := process{to, bufio.NewReader(from)}
		t.Cleanup(func() {
			_ = p.to.Close()
			_, _ = io.Copy(io.Discard, p.from)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, p)
	}
	const times = 20
	now := time.Now()
	for range times {
		now = now.Add(time.Minute + time.Second)
		for _, p := range all {
			fmt.Fprintf(p.to, "%s %d\n", made.ID, now.UnixMicro())
		}
		for _, p := range all {
			if line, err := p.from.ReadString('\n'); err != nil || line != "done\n" {
				t.Fatalf("a process says %q, %v", line, err)
			}
		}
		s, err := a.Schedules.Get(t.Context(), "local", made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := a.Kernel.Await(t.Context(), "local", s.LastCall); err != nil || string(res.Data) != `"A"` {
			t.Fatalf("the run of a feed says %s, %v", res.Data, err)
		}
	}
	rows, err := a.Store.Calls(t.Context(), store.CallFilter{Operation: "upper/upper"})
	if err != nil || len(rows) != times {
		t.Errorf("%d calls were made of %d times, %v", len(rows), times, err)
	}
	ticks, err := a.Store.Ticks(t.Context(), store.TickFilter{Tenant: "local", ScheduleID: made.ID})
	if err != nil || len(ticks) != times {
		t.Errorf("%d ticks, %v", len(ticks), err)
	}
	for _, tick := range ticks {
		if tick.Outcome != store.TickCalled {
			t.Errorf("%+v", tick)
		}
	}
}

// advance advances a schedule at each time that it reads.
func advance(t *testing.T, home string) {
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var id, at string
		if _, err := fmt.Sscan(in.Text(), &id, &at); err != nil {
			t.Fatal(err)
		}
		micros, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		engine := schedule.New(schedule.Options{Store: a.Store, Resolve: a.Registry.Resolve, Call: a.Kernel.Call, Now: func() time.Time { return time.UnixMicro(micros) }})
		if err := engine.Advance(t.Context(), "local", id); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("done")
	}
}
