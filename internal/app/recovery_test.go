package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// TestInRecoveryNothingTicksAndPeopleSettle: a due feed, a plan and a queued
// call do not advance while a host is in recovery; a person cancels one call
// and settles another whose outcome is unknown. Once recovery is confirmed, the
// feed and the plan continue.
func TestInRecoveryNothingTicksAndPeopleSettle(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, source := t.TempDir(), t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran.txt")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\nintents: {Gate.Meet: planner}\n")
	a := open(t, home)
	register(t, a, posting(t), false)
	add := func(name, command, rest string) {
		t.Helper()
		write(t, filepath.Join(source, name), "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, %s]}\n%s", name, self, command, rest))
		register(t, a, filepath.Join(source, name), false)
	}
	add("open", fmt.Sprintf("gate, open, %q", ran), "")
	var may []string
	for _, gate := range gates {
		may = append(may, gate.name+"/run")
	}
	add("planner", "planner", "operations:\n  plan: {kind: agent, description: Propose., allowed_actions: ["+strings.Join(may, ", ")+"]}\n")
	write(t, filepath.Join(source, "dying"), "manifest.yaml", `
name: dying
version: 1.0.0
owner: test
description: Dies.
runner: {kind: process, entry: plugin.py}
operations:
  die: {kind: operator, effects: [mail_send]}
`, "plugin.py", `
import os
from mortise import Plugin

plugin = Plugin("dying", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def die() -> str:
    os._exit(1)

plugin.run()
`)
	register(t, a, filepath.Join(source, "dying"), false)

	ctx := t.Context()
	call := plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "dying/die", Input: json.RawMessage(`{}`)}
	died, err := a.Kernel.Call(ctx, call)
	if err == nil || died.Status != plugin.Unknown {
		t.Fatalf("%+v, %v", died, err)
	}
	call.Operation, call.Input, call.NoWait = "posting/post", json.RawMessage(`{"text":"later"}`), true
	queued, err := a.Kernel.Call(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := a.Schedules.Create(ctx, "local", schedule.Schedule{Owner: a.Principal, Operation: "posting/post", Input: json.RawMessage(`{"text":"feed"}`), Spec: "every 1m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := a.Plans.Submit(ctx, plan.Submission{
		Tenant: "local", Principal: a.Principal, Agent: "planner", Origin: plugin.OriginCLI,
		Input: json.RawMessage(`{"intent":{"type":"Gate.Meet","payload":{"operation":"open/run","input":{"n":1}}}}`),
	})
	if err != nil || planned.State != store.PlanQueued {
		t.Fatalf("%+v, %v", planned, err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if _, err := archive.Backup(ctx, archive.BackupOptions{Home: home, File: file}); err != nil {
		t.Fatal(err)
	}
	to, _ := again(t, file, home)
	sqlEdit(t, to, fmt.Sprintf("UPDATE schedules SET created_at = created_at - %[1]d, next_at = next_at - %[1]d, wake_at = wake_at - %[1]d", time.Hour.Microseconds())) // its time came long ago
	restored := open(t, to)

	ticks := func() int {
		rows, err := restored.Store.Ticks(context.WithoutCancel(ctx), store.TickFilter{Tenant: "local", ScheduleID: feed.ID})
		if err != nil {
			t.Error(err)
		}
		return len(rows)
	}
	worksInVain(t, restored)
	if n := ticks(); n != 0 {
		t.Errorf("the feed ticked %d times", n)
	}
	if _, err := restored.Plans.Run(ctx, "local", planned.ID); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("the plan: %v", err)
	}
	if row, err := restored.Store.Plan(ctx, "local", planned.ID); err != nil || row.State != store.PlanQueued {
		t.Errorf("the plan is %+v, %v", row, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a step of the plan ran")
	}
	if s, err := restored.As(restored.Principal).Admin().Recovery(ctx); err != nil || s.Queued != 1 || s.Unknown != 1 || s.Plans != 1 || s.Feeds != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if state, err := restored.Kernel.Cancel(ctx, "local", queued.CallID, restored.Principal.ID, "it was done elsewhere"); err != nil || state != store.CallQueued {
		t.Errorf("cancelling: %s, %v", state, err)
	}
	if _, err := restored.Kernel.Settle(ctx, "local", died.CallID, kernel.Settlement{
		State: store.CallSucceeded, Data: json.RawMessage(`"sent"`), By: plugin.Principal{Type: "user", ID: "ann"}, Reason: "it is in the mailbox",
	}); err != nil {
		t.Errorf("settling: %v", err)
	}
	if s, err := restored.As(restored.Principal).Admin().Recovery(ctx); err != nil || s.Queued != 0 || s.Unknown != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(ctx, "nothing was done since"); err != nil {
		t.Fatal(err)
	}
	stop := working(t, restored)
	testwait.Until(t, "after the confirmation, the feed ticks and the plan runs", func() bool {
		_, err := os.Stat(ran)
		return ticks() > 0 && err == nil
	})
	stop()
}

// worksInVain has a host in recovery work, and returns once the host has looked for work of
// each kind and has tried all that it found.
func worksInVain(t *testing.T, a *app.App) {
	t.Helper()
	stop := working(t, a)
	defer stop()
	for range 2 {
		if _, err := a.Ledger.Recover(t.Context()); err != nil {
			t.Error(err)
		}
		for _, s := range a.Sweepers {
			due, err := s.Due(t.Context(), 100)
			if err != nil {
				t.Errorf("looking for work of the kind %s: %v", s.Kind(), err)
			}
			for _, item := range due {
				_ = s.Do(t.Context(), item) // a refusal is as good as nothing
			}
		}
	}
}

// withoutTables is a backup as an earlier release made it.
func withoutTables(t *testing.T, file string) string {
	t.Helper()
	inside, earlier := t.TempDir(), filepath.Join(t.TempDir(), "earlier")
	m, err := backup.Extract(t.Context(), file, inside)
	if err != nil {
		t.Fatal(err)
	}
	w, err := backup.Create(earlier, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range m.Members {
		switch {
		case strings.HasPrefix(member.Name, "database/"):
		case member.Dir:
			err = w.Add(t.Context(), member.Name, member.Mode, 0, nil)
		default:
			err = w.AddFile(t.Context(), member.Name, filepath.Join(inside, member.Name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.Tables = nil
	if err := w.Finish(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return earlier
}

// TestABackupOnPostgreSQL: one of an earlier release has all but the database. It puts the
// host that is restored in recovery, whichever copy of the database that opens.
func TestABackupOnPostgreSQL(t *testing.T) {
	t.Parallel()
	needPython(t)
	url := pgtest.Open(t)
	home := t.TempDir()
	write(t, home, "mortise.yaml", allowAll+"sandbox: off\n")
	a := openOn(t, home, url)
	register(t, a, posting(t), false)
	if _, err := post(t.Context(), a, "before"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	m, err := archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file, Database: config.Database(url)})
	if err != nil {
		t.Fatal(err)
	}
	if m.Database != "postgresql" || len(m.Heads) == 0 || len(m.Tables) == 0 || len(m.Notes) > 0 {
		t.Errorf("%s, %v, %d tables, %v", m.Database, m.Heads, len(m.Tables), m.Notes)
	}
	for _, member := range m.Members {
		if strings.Contains(member.Name, ".db") || strings.HasSuffix(member.Name, ".key") {
			t.Errorf("%s is in the backup", member.Name)
		}
	}
	if said := config.Database("postgres://ann:hunter22@db.example.com/state").String(); strings.Contains(said, "hunter22") || !strings.Contains(said, "db.example.com") {
		t.Errorf("a note would say %s", said)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	to, r := again(t, withoutTables(t, file), home)
	if r.Entries != -1 {
		t.Errorf("%d entries of a ledger that is elsewhere hold", r.Entries)
	}
	restored := openOn(t, to, url)
	if s, err := restored.As(restored.Principal).Admin().Recovery(t.Context()); err != nil || s.Recovery == nil || s.Recovery.Why != "restored from a backup" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := post(t.Context(), restored, "after"); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("an effect: %v", err)
	}
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
	restored = openOn(t, to, url)
	if _, err := post(t.Context(), restored, "after"); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("an effect, opened again: %v", err)
	}
	if _, err := restored.As(restored.Principal).Admin().ConfirmRecovery(t.Context(), "nothing was done since"); err != nil {
		t.Fatal(err)
	}
	if _, err := post(t.Context(), restored, "after"); err != nil {
		t.Error(err)
	}
}
