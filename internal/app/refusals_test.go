package app_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// An attempt is one use of a method by a principal who may not, and the entry
// that its refusal leaves.
type attempt struct {
	do      func(by plugin.Principal) error
	code    plugin.Code
	kind    plugin.EntryKind
	subject string
}

// refusesNothing are the methods that refuse no principal: they construct,
// answer a question about rights, leave out what may not be seen, or concern
// only what belongs to the principal.
var refusesNothing = map[string]string{
	"App.Plugins": "constructs", "App.Kept": "constructs; kept_test.go has an attempt for each of its methods", "App.Feeds": "constructs", "App.Roster": "constructs", "App.Secrets": "constructs", "App.Identities": "constructs",
	"App.Accounts": "constructs; each principal has accounts of its own", "App.TestModel": "every principal may ask a model that is configured",
	"App.MayApprove": "answers a question; approval.Service records the refusal", "App.MaySee": "answers a question",
	"Plugins.List": "leaves out", "Plugins.Route": "leaves out", "Feeds.List": "leaves out", "Secrets.List": "leaves out", "Secrets.Check": "leaves out",
	"Identities.For": "constructs",
}

// methodsOf returns the exported methods of a value; of App only those that are
// told who asks.
func methodsOf(v any) []string {
	t := reflect.TypeOf(v)
	name := t.Name()
	principal := reflect.TypeFor[plugin.Principal]()
	if t.Kind() == reflect.Pointer {
		name = t.Elem().Name()
	}
	var all []string
	for i := range t.NumMethod() {
		m := t.Method(i)
		asks := name != "App"
		for n := 1; n < m.Type.NumIn(); n++ {
			asks = asks || m.Type.In(n) == principal
		}
		if asks {
			all = append(all, name+"."+m.Name)
		}
	}
	return all
}

// Each administrative method of the host refuses a principal without rights, and
// each refusal leaves exactly one entry, which has its code and its subject.
func TestEveryRefusalOfTheHostLeavesOneEntry(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	home := modelHome(t, model.URL, "policy:\n  files: [policies]\n")
	write(t, home, "policies/eve.cedar", `
@id("owner") permit (principal == User::"root", action, resource);
@id("stranger") forbid (principal == User::"eve", action, resource);
@id("looks") permit (principal == User::"vic", action == Action::"list", resource);
@id("idle") forbid (principal == User::"vic", action == Action::"execute", resource);
@id("keeps") permit (principal == User::"kay", action == Action::"configure", resource == Plugin::"mortise.agents");
`)
	a := open(t, home)
	ctx := t.Context()
	register(t, a, upper(t), false)
	root := plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}
	eve, vic := root, root
	eve.ID, vic.ID = "eve", "vic"
	if _, err := a.Roster(root).Create(ctx, app.NewAgent{ID: "desk"}); err != nil {
		t.Fatal(err)
	}
	feed, err := a.Schedules.Create(ctx, "local", schedule.Schedule{Owner: root, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1h"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	talk, err := a.Roster(root).Talk(ctx, "desk", "", true)
	if err != nil {
		t.Fatal(err)
	}
	row, err := store.RecoveryRow(store.Recovery{Why: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Store.Write(ctx, func(tx store.Tx) error { return tx.PutKV(row) }); err != nil {
		t.Fatal(err)
	}
	queued, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: root, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: "k", NoWait: true})
	if err != nil {
		t.Fatal(err)
	}

	denied, missing := plugin.CodePolicyDenied, plugin.CodeNotFound
	at := "upper@1.0.0"
	attempts := map[string]attempt{
		"Plugins.Register": {func(by plugin.Principal) error {
			_, err := a.Plugins(by).Register(ctx, upper(t), registry.RegisterOptions{})
			return err
		}, denied, plugin.EntryPluginRefused, at},
		"Plugins.Enable":  {func(by plugin.Principal) error { _, err := a.Plugins(by).Enable(ctx, "upper"); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.Disable": {func(by plugin.Principal) error { _, err := a.Plugins(by).Disable(ctx, "upper"); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.Approve": {func(by plugin.Principal) error {
			_, err := a.Plugins(by).Approve(ctx, registry.Review{Name: "upper", Version: "1.0.0"})
			return err
		}, denied, plugin.EntryPluginRefused, at},
		"Plugins.Review":   {func(by plugin.Principal) error { _, err := a.Plugins(by).Review(ctx, "upper", true); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.Rollback": {func(by plugin.Principal) error { _, _, err := a.Plugins(by).Rollback(ctx, "upper"); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.Delete":   {func(by plugin.Principal) error { _, err := a.Plugins(by).Delete(ctx, "upper"); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.MayChange": {func(by plugin.Principal) error { return a.Plugins(by).MayChange(ctx, "enable", "upper") },
			denied, plugin.EntryPluginRefused, at},
		"Plugins.May": {func(by plugin.Principal) error {
			return a.Plugins(by).May(ctx, "enable", &plugin.Manifest{Name: "upper", Version: "1.0.0"})
		}, denied, plugin.EntryPluginRefused, at},
		"Plugins.Show":    {func(by plugin.Principal) error { _, err := a.Plugins(by).Show(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Actions": {func(by plugin.Principal) error { _, err := a.Plugins(by).Actions(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},

		"Feeds.Create": {func(by plugin.Principal) error {
			_, err := a.Feeds(by).Create(ctx, app.NewFeed{Plugin: "upper/upper", Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{"text":"a"}`), nil }})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Feeds.Show":        {func(by plugin.Principal) error { _, _, _, err := a.Feeds(by).Show(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Pause":       {func(by plugin.Principal) error { _, err := a.Feeds(by).Pause(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Resume":      {func(by plugin.Principal) error { _, err := a.Feeds(by).Resume(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Delete":      {func(by plugin.Principal) error { _, err := a.Feeds(by).Delete(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.ResetCursor": {func(by plugin.Principal) error { _, err := a.Feeds(by).ResetCursor(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Run":         {func(by plugin.Principal) error { _, err := a.Feeds(by).Run(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},

		"Roster.List": {func(by plugin.Principal) error { _, err := a.Roster(by).List(ctx); return err }, denied, plugin.EntryAgentRefused, "*"},
		"Roster.Create": {func(by plugin.Principal) error {
			_, err := a.Roster(by).Create(ctx, app.NewAgent{ID: "door"})
			return err
		}, denied, plugin.EntryAgentRefused, "door"},
		"Roster.Change": {func(by plugin.Principal) error {
			_, err := a.Roster(by).Change(ctx, "desk", app.AgentChange{Prompt: new("You rob.")})
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Start":    {func(by plugin.Principal) error { _, err := a.Roster(by).Start(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Stop":     {func(by plugin.Principal) error { _, err := a.Roster(by).Stop(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Delete":   {func(by plugin.Principal) error { _, err := a.Roster(by).Delete(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Remember": {func(by plugin.Principal) error { return a.Roster(by).Remember(ctx, "desk", "a", "b") }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Forget":   {func(by plugin.Principal) error { return a.Roster(by).Forget(ctx, "desk", "a") }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Schedule": {func(by plugin.Principal) error {
			_, err := a.Roster(by).Schedule(ctx, "desk", "hello", "every 1h", "")
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Assign":        {func(by plugin.Principal) error { _, err := a.Roster(by).Assign(ctx, "upper", "desk", true); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Assignments":   {func(by plugin.Principal) error { _, err := a.Roster(by).Assignments(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Show":          {func(by plugin.Principal) error { _, err := a.Roster(by).Show(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Memories":      {func(by plugin.Principal) error { _, err := a.Roster(by).Memories(ctx, "desk", "", 10); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Conversations": {func(by plugin.Principal) error { _, err := a.Roster(by).Conversations(ctx, "desk", 10); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Messages": {func(by plugin.Principal) error {
			_, _, err := a.Roster(by).Messages(ctx, "desk", talk.Session, 10)
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.Talk": {func(by plugin.Principal) error { _, err := a.Roster(by).Talk(ctx, "desk", "", false); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Roster.End":  {func(by plugin.Principal) error { _, err := a.Roster(by).End(ctx, "desk", talk.Session); return err }, denied, plugin.EntryAgentRefused, "desk"},

		"Secrets.Set": {func(by plugin.Principal) error {
			_, err := a.Secrets(by).Set(ctx, app.SecretPlace{Name: "key", System: true}, "v")
			return err
		}, denied, plugin.EntrySecretRefused, "key"},
		"Secrets.Delete": {func(by plugin.Principal) error {
			_, err := a.Secrets(by).Delete(ctx, app.SecretPlace{Name: "key", User: "not here"})
			return err
		}, denied, plugin.EntrySecretRefused, "key"},
		"Secrets.DeleteAll": {func(by plugin.Principal) error { _, err := a.Secrets(by).DeleteAll(ctx); return err }, denied, plugin.EntrySecretRefused, "*"},
		"Secrets.Rotate":    {func(by plugin.Principal) error { _, err := a.Secrets(by).Rotate(ctx); return err }, denied, plugin.EntrySecretRefused, "*"},

		"Identities.List":   {func(by plugin.Principal) error { _, err := a.Identities(by).List(ctx); return err }, denied, plugin.EntryIdentityRefused, ""},
		"Identities.Link":   {func(by plugin.Principal) error { _, err := a.Identities(by).Link(ctx, "mail", "x", "eve"); return err }, denied, plugin.EntryIdentityRefused, "mail:x"},
		"Identities.Unlink": {func(by plugin.Principal) error { _, err := a.Identities(by).Unlink(ctx, "mail", "x"); return err }, denied, plugin.EntryIdentityRefused, "mail:x"},

		"App.PutPolicy": {func(by plugin.Principal) error {
			_, err := a.PutPolicy(ctx, by, "mine", []byte("permit (principal, action, resource);"))
			return err
		}, denied, plugin.EntryPolicyRefused, "mine"},
		"App.DeletePolicy":    {func(by plugin.Principal) error { return a.DeletePolicy(ctx, by, "mine") }, denied, plugin.EntryPolicyRefused, "mine"},
		"App.ConfirmRecovery": {func(by plugin.Principal) error { _, err := a.ConfirmRecovery(ctx, by, "nothing was done"); return err }, denied, plugin.EntryRecoveryRefused, "recovery"},
		"App.ScheduleTurn": {func(by plugin.Principal) error {
			_, err := a.ScheduleTurn(ctx, by, "desk", "hello", "every 1h", "")
			return err
		}, denied, plugin.EntryFeedRefused, "agent.chat/turn"},
		"App.MayControl": {func(by plugin.Principal) error { return a.MayControl(ctx, "local", queued.CallID, by, "cancel") }, denied, plugin.EntryControlRefused, queued.CallID},
	}
	for _, v := range []any{a, a.Plugins(root), a.Feeds(root), a.Roster(root), a.Secrets(root), a.Identities(root)} {
		for _, method := range methodsOf(v) {
			if _, tried := attempts[method]; tried == (refusesNothing[method] != "") {
				t.Errorf("%s: either an attempt that is refused, or the reason why it refuses nothing, is here", method)
			}
		}
	}
	// More ways to be refused than one principal has.
	by := map[string]plugin.Principal{}
	also := func(name string, who plugin.Principal, one attempt) { attempts[name], by[name] = one, who }
	also("an agent ends the recovery", plugin.Principal{Type: "agent", ID: "desk", Scopes: []string{"*"}}, attempt{attempts["App.ConfirmRecovery"].do, plugin.CodeApprovalSelf, plugin.EntryRecoveryRefused, "recovery"})
	also("no reason, and no right", eve, attempt{func(by plugin.Principal) error { _, err := a.ConfirmRecovery(ctx, by, ""); return err }, denied, plugin.EntryRecoveryRefused, "recovery"})
	also("a feed of what may be seen and not run", vic, attempt{attempts["Feeds.Create"].do, denied, plugin.EntryFeedRefused, "upper/upper"})
	kay := plugin.Principal{Type: "user", ID: "kay", Scopes: []string{"*"}}
	also("the conversation of another", kay, attempt{func(by plugin.Principal) error {
		_, err := a.Roster(by).Talk(ctx, "desk", talk.Session, false)
		return err
	}, denied, plugin.EntryAgentRefused, "desk"})
	also("the end of one's own", eve, attempt{func(by plugin.Principal) error { _, err := a.Roster(by).End(ctx, "desk", ""); return err }, denied, plugin.EntryAgentRefused, "desk"})
	also("all agents' plugins", eve, attempt{func(by plugin.Principal) error {
		_, err := a.Roster(by).Assign(ctx, "upper", store.EveryAgent, true)
		return err
	}, denied, plugin.EntryAgentRefused, "*"})
	also("a policy whose name is none", eve, attempt{func(by plugin.Principal) error { _, err := a.PutPolicy(ctx, by, "NO\x00name", nil); return err }, denied, plugin.EntryPolicyRefused, "NO?name"})

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
	for name, one := range attempts {
		who, other := by[name]
		if !other {
			who = eve
		}
		news()
		err := one.do(who)
		if plugin.CodeOf(err) != one.code {
			t.Errorf("%s: %v; it is refused with %s", name, err, one.code)
		}
		left := news()
		if len(left) != 1 {
			t.Errorf("%s: %v left %d entries: %s", name, err, len(left), kindsOf(left))
			continue
		}
		var body struct {
			Code    plugin.Code `json:"code"`
			Action  string      `json:"action"`
			Message string      `json:"message"`
		}
		if err := json.Unmarshal(left[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if e := left[0]; e.Kind != one.kind || e.Subject != one.subject || e.Principal != app.MemberName(who) || body.Code != one.code || body.Action == "" || body.Message == "" {
			t.Errorf("%s left %s of %q by %s: %s; it is %s of %q", name, e.Kind, e.Subject, e.Principal, e.Body, one.kind, one.subject)
		}
	}
	if rec, err := store.ReadRecovery(ctx, a.Store); err != nil || rec == nil {
		t.Errorf("the recovery has ended: %v, %v", rec, err)
	}
}

func kindsOf(entries []plugin.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprintf("%s %s %s", e.Kind, e.Subject, e.Body))
	}
	return fmt.Sprint(all)
}
