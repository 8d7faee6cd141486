package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// patience is for what a host does by itself once its trouble is over, on a machine
// that has other things to do.
const patience = 2 * time.Minute

// An order to the host, beside calls.
type command struct {
	line
	Do   string `json:"do"`
	Spec string `json:"spec"`
}

// live makes the calls of standard input while the store has trouble, and tells how
// they stand, for as long as there are lines.
func live(home, database string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, err := open(ctx, home, database)
	if err != nil {
		return err
	}
	var working, making sync.WaitGroup
	working.Go(func() {
		if err := a.Work(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "host: working:", err)
		}
	})
	var out sync.Mutex
	say := func(ans answer) {
		raw, err := json.Marshal(ans)
		if err != nil {
			panic(err)
		}
		out.Lock()
		defer out.Unlock()
		_, _ = os.Stdout.Write(append(raw, '\n'))
	}
	slots := make(chan struct{}, 8)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		do := func() answer { return call(ctx, a, c.line, false) }
		switch c.Do {
		case "":
		case "again":
			do = func() answer { return again(ctx, a, c.line) }
		default: // when the calls before it are answered
			making.Wait()
			ans := answer{Key: c.Do, Status: plugin.Succeeded}
			if err := obey(ctx, a, c); err != nil {
				ans.Status, ans.Message = plugin.Failed, err.Error()
			}
			say(ans)
			continue
		}
		slots <- struct{}{}
		making.Go(func() {
			say(do())
			<-slots
		})
	}
	making.Wait()
	cancel()
	working.Wait()
	return a.Close()
}

// obey does what is no call.
func obey(ctx context.Context, a *app.App, c command) error {
	switch c.Do {
	case "arm":
		return fault.Arm(c.Spec)
	case "over":
		return over()
	case "standing":
		return standing(ctx, a)
	case "verify":
		return verify(ctx, a)
	}
	return fmt.Errorf("what is %q?", c.Do)
}

// over waits until the trouble that was armed is over; where it did not begin, there
// is none any more.
func over() error {
	for begun, over := fault.Begun(); begun && !over; begun, over = fault.Begun() {
		time.Sleep(20 * time.Millisecond)
	}
	begun, _ := fault.Begun()
	if err := fault.Arm(""); err != nil {
		return err
	}
	if !begun {
		return errors.New("not begun")
	}
	return nil
}

// again asks for a call under its key until there is a lasting answer.
func again(ctx context.Context, a *app.App, l line) answer {
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		ans := call(ctx, a, l, true)
		if ans.Status == plugin.Succeeded || ans.Status == plugin.Unknown || time.Now().After(deadline) {
			return ans
		}
		if row, err := a.Store.CallByKey(ctx, "local", "bank/"+l.Operation, ledger.StoredKey(&plugin.Call{Origin: plugin.OriginCLI, Key: l.Key})); err == nil && row != nil && row.State == host.CallFailed {
			return ans // which is replayed for good
		}
	}
}

// standing waits until no call is running, and holds that each that has
// ended has the entry of its end.
func standing(ctx context.Context, a *app.App) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		rows, err := a.Store.Calls(ctx, host.CallFilter{Limit: 40})
		if err == nil {
			open := slices.IndexFunc(rows, func(r host.CallRow) bool {
				return r.State == host.CallRunning || r.State == host.CallInProgress
			})
			if open < 0 {
				return entered(ctx, a, rows)
			}
			err = fmt.Errorf("call %s of %s, attempt %d, is %s", rows[open].ID, rows[open].Operation, rows[open].Attempt, rows[open].State)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", patience, err)
		}
	}
}

// entered holds that calls have the entry of how they ended.
func entered(ctx context.Context, a *app.App, rows []host.CallRow) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := a.Ledger.Flush(ctx)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("entries are not written: %w", err)
		}
	}
	for _, row := range rows {
		if !row.State.Ended() {
			continue
		}
		var kinds []string
		for e, err := range a.Store.Entries(ctx, host.EntryFilter{Tenant: row.Tenant, Subject: row.ID, Kind: "call."}) {
			if err != nil {
				return err
			}
			kinds = append(kinds, string(e.Kind))
		}
		if !slices.ContainsFunc(kinds, func(k string) bool {
			return k == "call."+string(row.State) || k == "call.settled" || row.State == host.CallFailed && k == "call.refused"
		}) {
			return fmt.Errorf("call %s of %s is %s, and its entries are %s", row.ID, row.Operation, row.State, strings.Join(kinds, ", "))
		}
	}
	return nil
}

// verify holds the ledger against its key.
func verify(ctx context.Context, a *app.App) error {
	key, err := chain.ReadKey(a.Home)
	if err != nil {
		return err
	}
	report, err := ledger.Verify(ctx, a.Store, key)
	if err == nil && report.Fault != nil {
		err = fmt.Errorf("the ledger does not hold: %+v", *report.Fault)
	}
	return err
}
