package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// What belongs to another is told by no answer from what there is not: the code and
// the message are the same but for the id that was asked for.
func TestNoAnswerTellsAnIdOfAnotherFromNone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy:\n  files: [policies]\n", "policies/kept.cedar",
		`@id("all may run it") permit (principal, action == Action::"execute", resource in Plugin::"upper");`)
	a := open(t, home)
	register(t, a, upper(t), false)
	alice, eve := plugin.Principal{Type: "user", ID: "alice", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	th := makeThings(t, a, alice, "a")
	none := things{session: "sess_000000000000", base: "base-z", call: "00000000-0000-7000-8000-000000000000", plan: "plan-z", approval: "approval-z"}
	for name, use := range map[string]struct {
		do       func(ctx context.Context, k host.API, th things) (found bool, err error)
		its, not string
	}{
		"a call": {func(ctx context.Context, k host.API, th things) (bool, error) {
			r, err := k.Calls().Get(ctx, th.call, "see")
			return r != nil, err
		}, th.call, none.call},
		"its end": {func(ctx context.Context, k host.API, th things) (bool, error) {
			r, err := k.Calls().Control(ctx, th.call, "settle")
			return r != nil, err
		}, th.call, none.call},
		"a plan": {func(ctx context.Context, k host.API, th things) (bool, error) {
			r, err := k.Plans().Get(ctx, th.plan, "see")
			return r != nil, err
		}, th.plan, none.plan},
		"an answer": {func(ctx context.Context, k host.API, th things) (bool, error) {
			r, err := k.Approvals().Get(ctx, th.approval, "decide")
			return r != nil, err
		}, th.approval, none.approval},
		"a session": {func(ctx context.Context, k host.API, th things) (bool, error) {
			_, err := k.Sessions().Get(ctx, th.session)
			return err == nil, err
		}, th.session, none.session},
		"a base": {func(ctx context.Context, k host.API, th things) (bool, error) {
			_, err := k.Knowledge().Get(ctx, th.base)
			return err == nil, err
		}, th.base, none.base},
		"what it is": {func(ctx context.Context, k host.API, th things) (bool, error) {
			_, err := k.Knowledge().Documents(ctx, kb.Listing{KB: th.base, Limit: 1})
			return err == nil, err
		}, th.base, none.base},
	} {
		ctx, k := t.Context(), a.As(eve)
		foundHers, hers := use.do(ctx, k, th)
		foundNone, not := use.do(ctx, k, none)
		if foundHers || foundNone || plugin.CodeOf(hers) != plugin.CodeNotFound {
			t.Errorf("%s: %v, %v", name, hers, not)
			continue
		}
		if not == nil { // which the command line says, in these words
			not = map[string]*plugin.Error{"a call": host.MissingCall(use.not), "its end": host.MissingCall(use.not), "an answer": host.MissingApproval(use.not)}[name]
		}
		if got, want := strings.ReplaceAll(hers.Error(), use.its, "ID"), strings.ReplaceAll(not.Error(), use.not, "ID"); got != want {
			t.Errorf("%s: of another's it is %q, and of none %q", name, got, want)
		}
	}
}

// A feed fills no knowledge base that its owner may not add to, however it is named.
func TestAFeedFillsNoBaseOfAnother(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := thievesAt(t, home)
	write(t, home, "mortise.yaml", allowAll)
	alice, eve := plugin.Principal{Type: "user", ID: "alice", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	if _, err := a.As(alice).Knowledge().Create(t.Context(), kb.Base{ID: "hers"}); err != nil {
		t.Fatal(err)
	}
	fills := func(by plugin.Principal, base string, byInput bool) error {
		n := host.NewFeed{Plugin: "reader/read", Knowledge: []string{base}, Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }}
		if byInput {
			n.Knowledge, n.Input = nil, func(*plugin.Target) (json.RawMessage, error) {
				return json.RawMessage(fmt.Sprintf(`{"__host":{"kb":{"knowledge_base_ids":[%q]}}}`, base)), nil
			}
		}
		_, err := a.As(by).Feeds().Create(t.Context(), n)
		return err
	}
	for _, byInput := range []bool{false, true} {
		if err := fills(alice, "hers", byInput); err != nil && byInput == false {
			t.Errorf("her own: %v", err)
		}
		hers, none := fills(eve, "hers", byInput), fills(eve, "nones", byInput)
		if byInput && hers == nil { // where the member is not the host's it decides nothing
			rows, err := a.Store.Schedules(t.Context(), store.ScheduleFilter{Tenant: "local"})
			if err != nil || slices.ContainsFunc(rows, func(r store.ScheduleRow) bool { return r.OwnerID == "eve" && strings.Contains(r.Overlay, "hers") }) {
				t.Errorf("eve's feeds: %+v, %v", rows, err)
			}
			continue
		}
		if plugin.CodeOf(hers) != plugin.CodeNotFound || plugin.CodeOf(none) != plugin.CodeNotFound ||
			strings.ReplaceAll(hers.Error(), "hers", "ID") != strings.ReplaceAll(none.Error(), "nones", "ID") {
			t.Errorf("by input %t: another's: %v; none: %v", byInput, hers, none)
		}
	}
}

// An id that another's knowledge base has is taken, which no answer can hide; whose
// it is is not said, and that it was tried is on record.
func TestATakenIdOfABaseNamesNoOwner(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	alice, eve := plugin.Principal{Type: "user", ID: "alice", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	if _, err := a.As(alice).Knowledge().Create(t.Context(), kb.Base{ID: "hers", Name: "Hers"}); err != nil {
		t.Fatal(err)
	}
	got, err := a.As(eve).Knowledge().Create(t.Context(), kb.Base{ID: "hers"})
	_, own := a.As(alice).Knowledge().Create(t.Context(), kb.Base{ID: "hers"})
	if plugin.CodeOf(err) != plugin.CodeInvalidInput || own == nil || err.Error() != own.Error() || got.Name != "" || got.CreatedBy != "" {
		t.Errorf("to eve %+v, %v; to alice %v", got, err, own)
	}
	if all := fmt.Sprint(entries(t, a)); strings.Count(all, string(plugin.EntryKBRefused)) != 1 {
		t.Errorf("on record is %s", all)
	}
}

// The key of a plan of another tells nothing of that plan.
func TestAKeyOfAnotherNamesNoPlan(t *testing.T) {
	t.Parallel()
	a := thievesAt(t, t.TempDir())
	submit := func(by plugin.Principal, input string) (*plan.View, error) {
		return a.Plans.Submit(t.Context(), plan.Submission{Tenant: "local", Principal: by, Agent: "planner", Origin: plugin.OriginCLI, Key: "shared",
			Input: json.RawMessage(fmt.Sprintf(`{"intent":{"type":"Gate.Meet","payload":{"operation":"reader/read","input":{"n":%q}}}}`, input))})
	}
	its, err := submit(ann, "a")
	if err != nil || its.ID == "" {
		t.Fatalf("%+v, %v", its, err)
	}
	for name, by := range map[string]plugin.Principal{
		"another":                {Type: "user", ID: "bob", Scopes: []string{"*"}},
		"another of its name":    {Type: "service", ID: ann.ID, Scopes: []string{"*"}},
		"another, another input": {Type: "user", ID: "eve", Scopes: []string{"*"}},
	} {
		input := "a"
		if strings.HasSuffix(name, "input") {
			input = "b"
		}
		before := strings.Count(fmt.Sprint(entries(t, a)), string(plugin.EntryPlanRefused))
		v, err := submit(by, input)
		if n := strings.Count(fmt.Sprint(entries(t, a)), string(plugin.EntryPlanRefused)); n != before+1 {
			t.Errorf("%s: the refusal left %d entries", name, n-before)
		}
		if v != nil || plugin.CodeOf(err) != plugin.CodeKeyConflict || strings.Contains(err.Error(), its.ID) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if v, err := submit(ann, "a"); err != nil || v.ID != its.ID {
		t.Errorf("her own: %+v, %v", v, err)
	}
	if _, err := submit(ann, "b"); plugin.CodeOf(err) != plugin.CodeKeyConflict || !strings.Contains(err.Error(), its.ID) {
		t.Errorf("her own with another input: %v", err)
	}
}

// Who may talk to an agent learns nothing of the conversations of others with it.
func TestAConversationOfAnotherIsNone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy:\n  files: [policies]\n", "policies/talk.cedar",
		`@id("all may talk") permit (principal, action == Action::"execute", resource in Plugin::"agent.chat");`)
	a := open(t, home)
	if _, err := a.As(a.Principal).Agents().Create(t.Context(), host.NewAgent{ID: "desk"}); err != nil {
		t.Fatal(err)
	}
	alice, eve := plugin.Principal{Type: "user", ID: "alice", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	hers, err := a.As(alice).Agents().Talk(t.Context(), "desk", "", true)
	if err != nil {
		t.Fatal(err)
	}
	tries := map[string]func(by plugin.Principal, session string) error{
		"going on with it": func(by plugin.Principal, session string) error {
			_, err := a.As(by).Agents().Talk(t.Context(), "desk", session, false)
			return err
		},
		"ending it": func(by plugin.Principal, session string) error {
			_, err := a.As(by).Agents().End(t.Context(), "desk", session)
			return err
		},
	}
	for _, name := range []string{"going on with it", "ending it"} {
		try := tries[name]
		its, none, short := try(eve, hers.Session), try(eve, "sess_000000000000"), try(eve, hers.Session[:len("sess_")+6])
		for _, err := range []error{its, none, short} {
			if plugin.CodeOf(err) != plugin.CodeNotFound {
				t.Fatalf("%s: %v, %v, %v", name, its, none, short)
			}
		}
		if got, want := strings.ReplaceAll(its.Error(), hers.Session, "ID"), strings.ReplaceAll(none.Error(), "sess_000000000000", "ID"); got != want {
			t.Errorf("%s: of another's it is %q, and of none %q", name, got, want)
		}
		if err := try(alice, hers.Session); err != nil {
			t.Errorf("%s, her own: %v", name, err)
		}
	}
}
