package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// things are one of each sort that the host keeps, all of them alice's.
type things struct {
	session, artifact, base, document, call, plan, key, approval string
}

// makeThings makes them afresh, so that an attempt may delete them.
func makeThings(t *testing.T, a *app.App, alice plugin.Principal, n string) (made things) {
	t.Helper()
	ctx, k := t.Context(), a.As(alice)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := k.Sessions().Create(ctx, session.Open{Name: "case " + n})
	must(err)
	art, err := k.Sessions().AddArtifact(ctx, s.ID, strings.NewReader("alice's"), session.Add{Name: "a.txt"})
	must(err)
	base, err := k.Knowledge().Create(ctx, kb.Base{ID: "base-" + n})
	must(err)
	doc, err := k.Knowledge().Ingest(ctx, kb.Source{KB: base.ID, ID: "one", Text: "alice wrote of marmots"})
	must(err)
	res, err := a.Kernel.Call(ctx, plugin.Call{
		Tenant: "local", Principal: alice, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: "k" + n, NoWait: true,
	})
	must(err)
	_, err = k.References().Add(ctx, "hosts", fileOf(t, "hosts.csv", "a,b\n"))
	if plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Fatalf("alice, who has no right to reference data, changes it: %v", err)
	}
	made = things{s.ID, art.ID, base.ID, doc.DocumentID, res.CallID, "plan-" + n, "hosts", "approval-" + n}
	must(a.Store.Write(ctx, func(tx store.Tx) error {
		err := tx.InsertApproval(store.ApprovalRow{Tenant: "local", ID: made.approval, SubjectKind: store.SubjectCall, SubjectID: res.CallID, TokenHash: made.approval,
			Requester: principal.Name(alice), State: store.ApprovalOpen, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)})
		if err != nil {
			return err
		}
		ofNoSteps, err := canon.Hash([]byte(`{"plan":1,"request":"","steps":[]}`))
		if err != nil {
			return err
		}
		_, err = tx.InsertPlan(store.PlanRow{Tenant: "local", ID: made.plan, Key: made.plan, Agent: "desk", ProposalCall: res.CallID, Principal: alice.ID, Hash: ofNoSteps,
			State: store.PlanQueued, CreatedAt: time.Now(), UpdatedAt: time.Now()}, nil)
		return err
	}))
	return made
}

// A use of what is kept by a principal, and the entry that its refusal leaves.
type keptUse struct {
	do      func(ctx context.Context, k host.API, th things) error
	code    plugin.Code
	kind    plugin.EntryKind
	subject func(things) string
}

// keptUses has a use for each method of the API that is about one thing that is kept.
func keptUses(t *testing.T) map[string]keptUse {
	file := fileOf(t, "hosts.csv", "a,b\n")
	ofSession := func(do func(ctx context.Context, k host.API, th things) error) keptUse {
		return keptUse{do, plugin.CodeNotFound, plugin.EntrySessionRefused, func(th things) string { return th.session }}
	}
	uses := map[string]keptUse{
		"Sessions.For": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().For(ctx, nil, th.session)
			return err
		}),
		"Sessions.AtHand": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().AtHand(ctx, &host.RouteQuery{}, th.session)
			return err
		}),
		"Sessions.AddDirectory": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().AddDirectory(ctx, th.session, "logs", []host.LaidFile{{Path: "a.txt", Artifact: th.artifact}}, host.NewArtifact{Name: "logs"})
			return err
		}),
		"Sessions.MadeFor": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().MadeFor(ctx, th.session, "save_to", "a.txt", []plugin.Artifact{{ID: th.artifact}})
			return err
		}),
		"Sessions.Get": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Get(ctx, th.session)
			return err
		}),
		"Sessions.Close": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Close(ctx, th.session)
			return err
		}),
		"Sessions.Resume": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Resume(ctx, th.session)
			return err
		}),
		"Sessions.Delete": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Delete(ctx, th.session)
			return err
		}),
		"Sessions.View": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().View(ctx, th.session)
			return err
		}),
		"Sessions.Artifacts": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Artifacts(ctx, th.session)
			return err
		}),
		"Sessions.Artifact": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().Artifact(ctx, th.session, th.artifact)
			return err
		}),
		"Sessions.OpenArtifact": ofSession(func(ctx context.Context, k host.API, th things) error {
			r, err := k.Sessions().OpenArtifact(ctx, th.session, th.artifact)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.ReadAll(r)
			return err
		}),
		"Sessions.AddArtifact": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().AddArtifact(ctx, th.session, strings.NewReader("b"), session.Add{Name: "b.txt"})
			return err
		}),
		"Sessions.AddFile": ofSession(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Sessions().AddFile(ctx, th.session, file, session.Add{})
			return err
		}),
	}
	maps.Copy(uses, otherUses(t, file))
	return uses
}

// otherUses are those of knowledge bases, calls, plans and what belongs to no one.
func otherUses(t *testing.T, file string) map[string]keptUse {
	ofCall := func(do func(ctx context.Context, k host.API, id string) error) keptUse {
		return keptUse{func(ctx context.Context, k host.API, th things) error { return do(ctx, k, th.call) }, plugin.CodeNotFound, plugin.EntryControlRefused, func(th things) string { return th.call }}
	}
	mitre := fileOf(t, "mitre.json", `{"type":"bundle","objects":[]}`)
	ofBase := func(do func(ctx context.Context, k host.API, th things) error) keptUse {
		return keptUse{do, plugin.CodeNotFound, plugin.EntryKBRefused, func(th things) string { return th.base }}
	}
	ofPlan := func(do func(ctx context.Context, k host.API, th things) error) keptUse {
		return keptUse{do, plugin.CodeNotFound, plugin.EntryControlRefused, func(th things) string { return th.plan }}
	}
	whole := func(kind plugin.EntryKind, subject string, do func(ctx context.Context, k host.API, th things) error) keptUse {
		return keptUse{do, plugin.CodePolicyDenied, kind, func(things) string { return subject }}
	}
	return map[string]keptUse{
		"Knowledge.Get": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Get(ctx, th.base)
			return err
		}),
		"Knowledge.Documents": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Documents(ctx, kb.Listing{KB: th.base, Limit: 10})
			return err
		}),
		"Knowledge.Document": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Document(ctx, th.base, th.document)
			return err
		}),
		"Knowledge.Ingest": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Ingest(ctx, kb.Source{KB: th.base, ID: "two", Text: "more"})
			return err
		}),
		"Knowledge.Search": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Search(ctx, kb.Query{KBs: []string{th.base}, Text: "marmots", Limit: 5})
			return err
		}),
		"Knowledge.Embed": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Embed(ctx, th.base, kb.By{})
			if plugin.CodeOf(err) != plugin.CodeNotFound && err != nil {
				return nil // no model of embeddings is configured, and that comes after
			}
			return err
		}),
		"Knowledge.RemoveDocument": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().RemoveDocument(ctx, th.base, th.document)
			return err
		}),
		"Knowledge.Delete": ofBase(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Knowledge().Delete(ctx, th.base)
			return err
		}),

		"Calls.Get": {func(ctx context.Context, k host.API, th things) error {
			_, err := k.Calls().Get(ctx, th.call, "see")
			return err
		},
			plugin.CodeNotFound, plugin.EntryControlRefused, func(th things) string { return th.call }},
		"Calls.Control": {func(ctx context.Context, k host.API, th things) error {
			_, err := k.Calls().Control(ctx, th.call, "cancel")
			return err
		}, plugin.CodeNotFound, plugin.EntryControlRefused, func(th things) string { return th.call }},
		"Calls.Cancel": {func(ctx context.Context, k host.API, th things) error {
			_, err := k.Calls().Cancel(ctx, th.call, "")
			return err
		}, plugin.CodeNotFound, plugin.EntryControlRefused, func(th things) string { return th.call }},
		"Calls.Standing": ofCall(func(ctx context.Context, k host.API, id string) error {
			_, err := k.Calls().Standing(ctx, id)
			return err
		}),
		"Calls.Wait": ofCall(func(ctx context.Context, k host.API, id string) error {
			_, err := k.Calls().Wait(ctx, id, host.Waiting{})
			return err
		}),
		"Calls.Follow": ofCall(func(ctx context.Context, k host.API, id string) error {
			ctx, stop := context.WithCancel(ctx)
			_, err := k.Calls().Follow(ctx, id, func(*plugin.Entry) { stop() })
			stop()
			if errors.As(err, new(host.Unfinished)) {
				err = nil
			}
			return err
		}),
		"Approvals.Get": {func(ctx context.Context, k host.API, th things) error {
			_, err := k.Approvals().Get(ctx, th.approval, "see")
			return err
		}, plugin.CodeNotFound, plugin.EntryApprovalRefused, func(th things) string { return th.call }},
		"Plans.Get": ofPlan(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Plans().Get(ctx, th.plan, "see")
			return err
		}),
		"Plans.Cancel": ofPlan(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Plans().Cancel(ctx, th.plan, "")
			return err
		}),
		"Plans.Resume": ofPlan(func(ctx context.Context, k host.API, th things) error {
			_, err := k.Plans().Resume(ctx, th.plan)
			return err
		}),

		"References.Add": whole(plugin.EntryReferenceRefused, "hosts", func(ctx context.Context, k host.API, _ things) error {
			_, err := k.References().Add(ctx, "hosts", file)
			return err
		}),
		"References.Put": whole(plugin.EntryReferenceRefused, "hosts", func(ctx context.Context, k host.API, _ things) error {
			_, err := k.References().Put(ctx, "hosts", "csv", []byte("a,b\n"))
			return err
		}),
		"References.AddMitre": whole(plugin.EntryReferenceRefused, "mitre_techniques", func(ctx context.Context, k host.API, _ things) error {
			_, _, err := k.References().AddMitre(ctx, mitre)
			if plugin.CodeOf(err) == plugin.CodeInvalidInput {
				return nil // an empty bundle, which is found out by who may
			}
			return err
		}),
		"References.Remove": whole(plugin.EntryReferenceRefused, "hosts", func(ctx context.Context, k host.API, _ things) error {
			err := k.References().Remove(ctx, "hosts")
			if plugin.CodeOf(err) == plugin.CodeNotFound {
				return nil // who may hears that there is none
			}
			return err
		}),
		"Ledger.List": whole(plugin.EntryLedgerRefused, "ledger", func(ctx context.Context, k host.API, _ things) error {
			_, _, err := k.Ledger().List(ctx, host.EntryQuery{Limit: 1})
			return err
		}),
		"Events.Open": whole(plugin.EntryLedgerRefused, "ledger", func(ctx context.Context, k host.API, _ things) error {
			stream, _, err := k.Events().Open(ctx, host.EventQuery{Types: []string{host.EventLedger}})
			if err == nil {
				stream.Close()
			}
			return err
		}),
		"Ledger.Heads": whole(plugin.EntryLedgerRefused, "ledger", func(ctx context.Context, k host.API, _ things) error {
			_, err := k.Ledger().Heads(ctx)
			return err
		}),
		"Ledger.Verify": whole(plugin.EntryLedgerRefused, "ledger", func(ctx context.Context, k host.API, _ things) error {
			_, _, err := k.Ledger().Verify(ctx)
			return err
		}),
		"Ledger.Find": whole(plugin.EntryLedgerRefused, "ledger", func(ctx context.Context, k host.API, th things) error {
			_, err := k.Ledger().Find(ctx, th.call)
			return err
		}),
		"Admin.MayWatch":  whole(plugin.EntryMetricsRefused, "metrics", func(ctx context.Context, k host.API, _ things) error { return k.Admin().MayWatch(ctx) }),
		"Admin.MayBackup": whole(plugin.EntryBackupRefused, "backup", func(ctx context.Context, k host.API, _ things) error { return k.Admin().MayBackup(ctx) }),
	}
}

// Whatever the host keeps may be used by who began it, by the administrator and by
// whom policy permits; for all others it is not there, and each try leaves one
// entry. TestEveryMethodOfTheAPIIsTried sees that none is forgotten.
func TestWhatIsKeptIsItsOwners(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy:\n  files: [policies]\n")
	write(t, home, "policies/kept.cedar", `
@id("all may run it") permit (principal, action == Action::"execute", resource in Plugin::"upper");
@id("pat") permit (principal == User::"pat", action == Action::"configure", resource) when {
	[Plugin::"mortise.sessions", Plugin::"mortise.calls", Plugin::"mortise.knowledge", Plugin::"mortise.reference",
	Plugin::"mortise.ledger", Plugin::"mortise.backup", Plugin::"mortise.metrics"].contains(resource) };
`)
	a := open(t, home)
	ctx := t.Context()
	register(t, a, upper(t), false)
	who := func(kind, id string) plugin.Principal {
		return plugin.Principal{Type: kind, ID: id, Scopes: []string{"*"}}
	}
	alice, eve := who("user", "alice"), who("user", "eve")
	uses := keptUses(t)
	last := int64(0)
	news := func() (all []plugin.Entry) {
		t.Helper()
		for e, err := range a.Store.Entries(ctx, store.EntryFilter{Tenant: "local", After: last}) {
			if err != nil {
				t.Fatal(err)
			}
			all, last = append(all, e), e.Seq
		}
		return all
	}
	n := 0
	for name, use := range uses {
		for _, by := range []struct {
			plugin.Principal
			may bool
		}{{alice, true}, {a.Principal, true}, {who("user", "pat"), true}, {eve, false}, {who("service", "alice"), false}} {
			n++
			th := makeThings(t, a, alice, string(rune('a'+n/26/26%26))+string(rune('a'+n/26%26))+string(rune('a'+n%26)))
			news()
			err := use.do(ctx, a.As(by.Principal), th)
			left := slices.DeleteFunc(news(), func(e plugin.Entry) bool { return !strings.HasSuffix(string(e.Kind), ".refused") })
			may, code := by.may, use.code
			switch {
			case name == "Calls.Control", name == "Calls.Cancel": // for who made it, and who may approve its operation
				if may = may && by.ID != "pat"; by.ID == "pat" { // who sees all calls hears why
					code = plugin.CodePolicyDenied
				}
			case use.code == plugin.CodePolicyDenied: // what belongs to none is by right alone
				may = may && by.ID != "alice"
			}
			if may {
				if err != nil || len(left) > 0 {
					t.Errorf("%s by %s: %v, %s; it is allowed", name, principal.Name(by.Principal), err, kindsOf(left))
				}
				continue
			}
			if plugin.CodeOf(err) != code || len(left) != 1 || left[0].Kind != use.kind || left[0].Subject != use.subject(th) ||
				left[0].Principal != principal.Name(by.Principal) {
				t.Errorf("%s by %s: %v, %s; it is refused with %s and leaves %s of %s", name, principal.Name(by.Principal), err, kindsOf(left), use.code, use.kind, use.subject(th))
			}
		}
	}
}

// Lists show to each what they may use, and a message does not tell what is hidden
// from what is not there.
func TestListsShowWhatMayBeUsed(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	register(t, a, upper(t), false)
	alice, eve := plugin.Principal{Type: "user", ID: "alice", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	ctx := t.Context()
	th := makeThings(t, a, alice, "last")
	lists := map[string]func(k host.API) (int, error){
		"Sessions": func(k host.API) (int, error) { l, err := k.Sessions().List(ctx); return len(l), err },
		"Bases":    func(k host.API) (int, error) { l, err := k.Knowledge().List(ctx); return len(l), err },
		"Calls": func(k host.API) (int, error) {
			l, err := k.Calls().List(ctx, store.CallFilter{Limit: 5})
			return len(l), err
		},
		"Plans": func(k host.API) (int, error) {
			l, err := k.Plans().List(ctx, store.PlanFilter{Limit: 5})
			return len(l), err
		},
		"Search": func(k host.API) (int, error) {
			l, err := k.Knowledge().Search(ctx, kb.Query{Text: "marmots", Limit: 5})
			return len(l), err
		},
	}
	for name, list := range lists {
		for _, by := range []plugin.Principal{alice, a.Principal, eve} {
			n, err := list(a.As(by))
			if err != nil || (n == 0) != (by.ID == "eve") {
				t.Errorf("%s for %s: %d, %v", name, by.ID, n, err)
			}
		}
	}
	// The message to another is the one for what is not there.
	_, hidden := a.As(eve).Sessions().Get(ctx, th.session)
	_, absent := a.As(eve).Sessions().Get(ctx, "sess_000000000000")
	if strings.ReplaceAll(hidden.Error(), th.session, "ID") != strings.ReplaceAll(absent.Error(), "sess_000000000000", "ID") {
		t.Errorf("the messages tell what is hidden from what is not there: %v; %v", hidden, absent)
	}
	if _, err := a.As(alice).Sessions().Get(ctx, th.session[:9]); plugin.CodeOf(err) == plugin.CodeNotFound {
		t.Errorf("alice's own session by the beginning of its id: %v", err)
	}
}

// A change of reference data is on the record with the hash of what is there then.
func TestReferenceDataIsChangedOnTheRecord(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	ctx := t.Context()
	k := a.As(a.Principal)
	if _, err := k.References().Add(ctx, "hosts", fileOf(t, "hosts.csv", "a,b\n")); err != nil {
		t.Fatal(err)
	}
	if err := k.References().Remove(ctx, "hosts"); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e, err := range a.Store.Entries(ctx, store.EntryFilter{Kind: "reference."}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind)+" "+e.Subject)
		if e.Kind == plugin.EntryReferenceAdded && !strings.Contains(string(e.Body), `"value_hash":"sha256:`) {
			t.Errorf("the entry does not say what was added: %s", e.Body)
		}
	}
	if got := strings.Join(kinds, ", "); got != "reference.added hosts, reference.removed hosts" {
		t.Errorf("entries: %s", got)
	}
}

// The command line reaches what is kept through [host.API] alone, which asks whose it is.
func TestTheCommandLineReachesWhatIsKeptThroughOneGuard(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../surface/cli/*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{"a.Sessions.", "a.Knowledge.", "a.Reference.", "session.New(", "kb.New(", "reference.Open(", "plan.New(",
			"a.Plans.Show(", "a.Plans.List(", "a.Plans.Cancel(", "a.Plans.Resume(", "a.Store.Call(", "a.Store.Session(", "a.Store.KB("} {
			if strings.Contains(string(text), way) {
				t.Errorf("%s has %s, which goes past the API of the host", file, way)
			}
		}
	}
}

// fileOf writes a file of that name and returns its path.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, name, text)
	return filepath.Join(dir, name)
}
