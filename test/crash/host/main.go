// Command host is the host that the crash campaign kills: a real one, built
// with the tag fault. It reads calls from standard input, makes them, and
// answers each with a line; beside that it does what is waiting, as a server
// does. Started with the argument plugin it is the plugin that is called.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "plugin" {
		serve()
		return
	}
	var err error
	switch mode, home, database := os.Args[1], os.Args[2], os.Args[3]; mode {
	case "calls":
		err = run(home, database, true)
	case "once":
		err = run(home, database, false)
	case "live":
		err = live(home, database)
	case "node":
		err = node(home, database)
	case "submit":
		err = submit(home, database, os.Args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// An order is what an operation sends on.
type order struct {
	Key   string `json:"key"`
	Times int    `json:"times"`
}

// serve is the plugin: each operation posts its order as often as that says.
func serve() {
	p := mortise.New("bank", "1.0.0")
	p.Capabilities = []string{"http"}
	for _, op := range []struct{ name, host string }{{"deposit", "keyed"}, {"wire", "plain"}, {"raw", "plain"}, {"gated", "keyed"}} {
		mortise.Operator(p, op.name, "Send an order.", func(c *mortise.Call, in order) (map[string]any, error) {
			var numbers []any
			for n := range in.Times {
				var answer struct {
					JSON struct {
						Number int `json:"number"`
					} `json:"json"`
				}
				request := map[string]any{"method": "POST", "url": "http://" + op.host + ".example.com/effects", "json": map[string]any{"key": in.Key, "n": n}}
				if err := c.Service("http.fetch", request, &answer); err != nil {
					return nil, err
				}
				numbers = append(numbers, answer.JSON.Number)
			}
			return map[string]any{"key": in.Key, "numbers": numbers}, nil
		}, mortise.Effects("http_write"))
	}
	mortise.Agent(p, "planner", "Propose six orders, one after the other.", func(_ *mortise.Call, in mortise.AgentInput) (mortise.Proposal, error) {
		var payload order
		if err := json.Unmarshal(in.Intent.Payload, &payload); err != nil {
			return mortise.Proposal{}, err
		}
		proposal := mortise.Proposal{
			AgentName: "bank", AgentVersion: "1.0.0", Kind: mortise.PlanProposal, Confidence: 1,
			Rationale: mortise.Rationale{Short: "They were asked for.", Signals: []string{"intent_type:Orders"}}, ProposedPlan: &mortise.ProposedPlan{},
		}
		for i := range payload.Times {
			proposal.ProposedPlan.Steps = append(proposal.ProposedPlan.Steps, mortise.ProposedStep{
				ID: fmt.Sprintf("s%d", i), Action: "bank/deposit", Gate: mortise.GateNone, Payload: order{fmt.Sprintf("%s-%d", payload.Key, i), 1},
			})
		}
		return proposal, nil
	}, mortise.AllowedActions("bank/deposit"))
	p.Run()
}

// A line is one call that is to be made.
type line struct {
	Operation string `json:"operation"`
	Key       string `json:"key"`
	Times     int    `json:"times"`
}

// An answer is one line of output.
type answer struct {
	Key     string          `json:"key"`
	Status  plugin.Status   `json:"status"`
	Code    plugin.Code     `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// open opens the host, and registers the plugin where it is not.
func open(ctx context.Context, home, database string) (*app.App, error) {
	a, err := app.Open(ctx, app.Options{Home: home, Database: database, Lease: 2 * time.Second, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return nil, err
	}
	if _, err := a.Registry.Resolve(ctx, "bank/deposit"); err != nil {
		report, err := a.Registry.Register(ctx, filepath.Join(home, "bank"), registry.RegisterOptions{Enable: true})
		if err != nil {
			return nil, err
		}
		if err := report.Registered[0].NotEnabled; err != nil {
			return nil, err
		}
	}
	return a, nil
}

// node does what is waiting until it is killed.
func node(home, database string) error {
	ctx := context.Background()
	a, err := open(ctx, home, database)
	if err != nil {
		return err
	}
	fmt.Println(a.Store.Node())
	return a.Work(ctx)
}

// submit has the agent propose a plan, leaves it to the nodes, and waits for
// its end, which is printed.
func submit(home, database, key string) error {
	ctx := context.Background()
	a, err := open(ctx, home, database)
	if err != nil {
		return err
	}
	v, err := a.Plans.Submit(ctx, plan.Submission{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}, Agent: "bank/planner", Key: key, Origin: plugin.OriginCLI,
		Input: json.RawMessage(fmt.Sprintf(`{"intent":{"type":"Orders","payload":{"key":%q,"times":6}}}`, key)),
	})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(90 * time.Second); !plan.Ended(v.State); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("plan %s is %s after 90 s", v.ID, v.State)
		}
		if v, err = a.Plans.Show(ctx, "local", v.ID); err != nil {
			return err
		}
	}
	calls, err := a.Store.Calls(ctx, host.CallFilter{Plan: v.ID})
	if err != nil {
		return err
	}
	attempts := map[string]int64{}
	for _, row := range calls {
		attempts[row.Key] = row.Attempt
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"state": v.State, "error": v.Error, "attempts": attempts}); err != nil {
		return err
	}
	return a.Close()
}

// run makes the calls of standard input. With end it waits for the end of each,
// and of all others there are; without, it answers with how each stands.
func run(home, database string, end bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, err := open(ctx, home, database)
	if err != nil {
		return err
	}
	var working sync.WaitGroup
	working.Go(func() {
		if err := a.Work(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "host: working:", err)
		}
	})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	closed := make(chan error, 1)
	go func() { // as a server does
		<-asked
		fmt.Fprintln(os.Stderr, "host: closing")
		cancel() // the work, and not the calls that others made
		working.Wait()
		closed <- a.Close()
	}()
	calls(context.Background(), a, end)
	if ctx.Err() != nil {
		return <-closed
	}
	if end {
		if err := settled(ctx, a); err != nil {
			return err
		}
	}
	cancel()
	working.Wait()
	return a.Close()
}

// calls makes the calls of standard input, eight at a time.
func calls(ctx context.Context, a *app.App, end bool) {
	var out sync.Mutex
	var making sync.WaitGroup
	slots := make(chan struct{}, 8)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		slots <- struct{}{}
		making.Go(func() {
			defer func() { <-slots }()
			raw, err := json.Marshal(call(ctx, a, l, end))
			if err != nil {
				panic(err)
			}
			out.Lock()
			defer out.Unlock()
			_, _ = os.Stdout.Write(append(raw, '\n'))
		})
	}
	making.Wait()
}

// call makes one call, and approves it where it waits for that.
func call(ctx context.Context, a *app.App, l line, end bool) answer {
	input, err := json.Marshal(order{l.Key, l.Times})
	if err != nil {
		panic(err)
	}
	res, err := a.Kernel.Call(ctx, plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: "bank/" + l.Operation, Input: input, Key: l.Key,
	})
	if err == nil && res.Status == plugin.PendingApproval {
		_, decided := a.Approvals.Decide(ctx, approval.Answer{Tenant: "local", ID: res.Approval.ID, Approve: true, By: plugin.Principal{Type: "user", ID: "bob"}})
		if decided != nil && plugin.CodeOf(decided) != plugin.CodeApprovalUsed { // it waits on
			return answer{Key: l.Key, Status: res.Status, Message: decided.Error()}
		}
	}
	if err == nil && !res.Status.Ended() && end {
		res, err = a.Kernel.Await(ctx, "local", res.CallID)
	}
	ans := answer{Key: l.Key, Status: res.Status, Data: res.Data}
	if err != nil {
		e := plugin.AsError(err)
		ans.Status, ans.Code, ans.Message = plugin.Failed, e.Code, e.Error()
		if e.Code == plugin.CodeOutcomeUnknown || res.Status == plugin.Unknown {
			ans.Status = plugin.Unknown
		}
	}
	return ans
}

// settled waits until every call there is has ended. It approves those whose
// caller could not, because the host was paused or its store away.
func settled(ctx context.Context, a *app.App) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var open []host.CallRow
		for _, state := range []host.CallState{host.CallPending, host.CallQueued, host.CallRunning, host.CallInProgress} {
			rows, err := a.Store.Calls(ctx, host.CallFilter{State: state})
			if err != nil {
				return err
			}
			open = append(open, rows...)
		}
		if len(open) == 0 {
			return nil
		}
		asked, err := a.Store.Approvals(ctx, host.ApprovalFilter{Tenant: "local", State: host.ApprovalOpen})
		if err != nil {
			return err
		}
		for _, row := range asked {
			_, err := a.Approvals.Decide(ctx, approval.Answer{Tenant: "local", ID: row.ID, Approve: true, By: plugin.Principal{Type: "user", ID: "bob"}})
			if err != nil && plugin.CodeOf(err) != plugin.CodeApprovalUsed {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d calls have not ended after %s, such as %s, which is %s", len(open), patience, open[0].ID, open[0].State)
		}
	}
}
