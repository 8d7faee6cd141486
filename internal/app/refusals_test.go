package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
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

// refusesNothing are the methods that refuse no principal: they answer a question
// about rights, leave out what may not be seen, or concern only what belongs to the
// principal.
var refusesNothing = map[string]string{
	"Plugins.List": "leaves out", "Plugins.Tools": "leaves out", "Plugins.Tool": "tells no more than Tools", "Calls.Own": "leaves out", "Plugins.Route": "leaves out", "Plugins.Halted": "leaves out", "Plugins.Operation": "the kernel refuses the call, on the record", "Plugins.Waits": "the kernel refuses the call, on the record",
	"Feeds.List": "leaves out", "Secrets.List": "leaves out", "Secrets.Check": "leaves out", "Policies.List": "all may see the policies in force",
	"Tokens.List": "leaves out", "Tokens.Rotate": "is about the token that authenticated the caller",
	"Identities.For": "constructs",
	"Browsers.List":  "leaves out",

	"Approvals.Asked": "asks Show", "Approvals.Answer": "asks Decide", "Calls.Reconcile": "asks Control", "Plans.Wait": "asks Get",

	"Approvals.MayConfirm": "answers about what its caller asked for themselves",
	"Approvals.Confirm":    "internal/app::TestAConfirmationTakesSelf has who may not, each with its entry",

	"Decisions.Decide": "the kernel refuses the call, on the record",
	"Decisions.Get":    "internal/surface/rest::TestADecision has the decision of another, and its entry",
	"Decisions.Settle": "internal/surface/rest::TestADecision has the decision of another, and its entry",
	"Accounts.Begin":   "each principal has accounts of its own",
	"Accounts.Remove":  "each principal has accounts of its own",
	"Accounts.Test":    "each principal has accounts of its own",
	"Accounts.List":    "each principal has accounts of its own",
	"Sessions.Create":  "makes what is theirs", "Knowledge.Create": "makes what is theirs; TestNoAnswerTellsAnIdOfAnotherFromNone has the id of another",
	"References.List": "names and sizes of what every plugin may read",
	"Calls.Page":      "leaves out", "Calls.PageIn": "leaves out", "Plans.Page": "leaves out", "Approvals.Page": "leaves out", "Secrets.All": "says whether they see those of others",
	"Sessions.List": "leaves out", "Knowledge.List": "leaves out", "Calls.List": "leaves out", "Plans.List": "leaves out", "Approvals.List": "leaves out",
	"Calls.Find": "asks Get", "Calls.Stay": "asks Standing, and does what its caller may", "Calls.Show": "asks Get", "Calls.Input": "asks Get", "Calls.FindToControl": "asks Control", "Calls.Settle": "asks Control", "Calls.ListIn": "asks List", "Approvals.Find": "asks Get", "Approvals.Show": "asks Get", "Approvals.Questions": "leaves out", "Approvals.Decide": "asks Find, and TestASecondPersonIsAnAuthenticatedOne has who may",
	"Sessions.Find": "asks Get", "Sessions.FindArtifact": "asks Artifact", "Knowledge.FindDocument": "asks Document", "Knowledge.FindAndRemove": "asks RemoveDocument",
	"Feeds.Find":       "returns an id alone",
	"Policies.Version": "all may see the policies in force", "Policies.Simulate": "asks what Ask asks", "Policies.Try": "asks what Ask asks, and of a token the right to configure, which TestTryingPolicies has", "Adapters.Deliver": "the kernel refuses the call of the adapter, on the record, and a token with operations as a plan of one", "Plans.Submit": "the kernel refuses the call of the agent, on the record, and TestATokenWithOperationsMakesNoPlan has who may not",
	"Offers.Calls": "leaves out", "Offers.Plans": "leaves out", "Offers.Approvals": "leaves out", "Offers.Feeds": "leaves out", "Offers.Agents": "leaves out",
	"Offers.Memories": "leaves out", "Offers.Conversations": "leaves out",
	"Models.List":    "all may see which are configured",
	"Admin.Recovery": "all may see that nothing with effects runs, and no one is refused that",
}

// attempted are the methods of which TestEveryRefusalOfTheHostLeavesOneEntry has an
// attempt.
var attempted = []string{
	"Plugins.Register", "Plugins.Link", "Plugins.Enable", "Plugins.Disable", "Plugins.Approve", "Plugins.Review", "Plugins.Rollback", "Plugins.Delete", "Plugins.Environment", "Plugins.RemoveEnvironment", "Plugins.Refresh", "Plugins.Map", "Plugins.Needs", "Plugins.Subscribe", "Plugins.Unsubscribe",
	"Plugins.MayChange", "Plugins.May", "Plugins.Show", "Plugins.Actions", "Feeds.Create", "Feeds.Show", "Feeds.Pause", "Feeds.Resume",
	"Feeds.Delete", "Feeds.ResetCursor", "Feeds.Change", "Feeds.Run", "Agents.List", "Agents.Create", "Agents.Change", "Agents.Start", "Agents.Stop",
	"Agents.Delete", "Agents.Remember", "Agents.Forget", "Agents.Schedule", "Agents.Assign", "Agents.Assignments", "Agents.Get", "Agents.Show",
	"Agents.Memories", "Agents.Conversations", "Agents.Messages", "Agents.Talk", "Agents.End", "Secrets.Set", "Secrets.Delete",
	"Secrets.DeleteAll", "Secrets.Rotate", "Secrets.ClientSecret", "Identities.List", "Identities.Link", "Identities.Unlink", "Tokens.Create", "Tokens.Revoke", "Users.List", "Users.Show", "Users.Create", "Users.Disable", "Users.Enable", "Users.Invite", "Users.Unlink", "Tenants.List", "Tenants.Show", "Tenants.Create", "Tenants.Disable", "Tenants.Enable", "Browsers.End", "Policies.Put", "Policies.Suppose", "Policies.Delete",
	"Admin.ConfirmRecovery", "Admin.Retention", "Admin.ApplyRetention", "Admin.Erase", "Admin.Erasures", "Approvers.MayControl", "Policies.Explain", "Policies.Ask", "Models.Test", "Plugins.Resolve",
}

// Each method of each noun of the API has an attempt that is refused and leaves its
// entry, or a reason why it refuses nothing.
func TestEveryMethodOfTheAPIIsTried(t *testing.T) {
	t.Parallel()
	uses := keptUses(t)
	nouns := 0
	for getter := range reflect.TypeFor[host.API]().Methods() {
		if getter.Type.NumOut() != 1 || getter.Type.Out(0).Kind() != reflect.Struct {
			continue // what the API itself says: the tenant, the store, whether all is theirs
		}
		nouns++
		for m := range getter.Type.Out(0).Methods() {
			name := getter.Name + "." + m.Name
			_, kept := uses[name]
			if tried := kept || slices.Contains(attempted, name); tried == (refusesNothing[name] != "") {
				t.Errorf("%s: either an attempt that is refused, or the reason why it refuses nothing, is here", name)
			}
		}
	}
	if nouns < 14 {
		t.Errorf("the API has %d nouns", nouns)
	}
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
	if _, err := a.As(root).Agents().Create(ctx, host.NewAgent{ID: "desk"}); err != nil {
		t.Fatal(err)
	}
	feed, err := a.Schedules.Create(ctx, "local", schedule.Schedule{Owner: root, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1h"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	talk, err := a.As(root).Agents().Talk(ctx, "desk", "", true)
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
			_, err := a.As(by).Plugins().Register(ctx, upper(t), registry.RegisterOptions{})
			return err
		}, denied, plugin.EntryPluginRefused, at},
		"Plugins.Link":    {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Link(ctx, upper(t)); return err }, denied, plugin.EntryPluginRefused, at},
		"Plugins.Enable":  {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Enable(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Disable": {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Disable(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Approve": {func(by plugin.Principal) error {
			_, err := a.As(by).Plugins().Approve(ctx, registry.Review{Name: "upper", Version: "1.0.0"})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Plugins.Review":      {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Review(ctx, "upper", true); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Needs":       {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Needs(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Subscribe":   {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Subscribe(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Unsubscribe": {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Unsubscribe(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Map": {func(by plugin.Principal) error {
			_, err := a.As(by).Plugins().Map(ctx, "upper/upper", &host.MappingWord{Tool: true})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Plugins.Environment": {func(by plugin.Principal) error {
			_, err := a.As(by).Plugins().Environment(ctx, "upper", "")
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Plugins.Refresh": {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Refresh(ctx, "upper"); return err },
			missing, plugin.EntryPluginRefused, at},
		"Plugins.RemoveEnvironment": {func(by plugin.Principal) error {
			_, err := a.As(by).Plugins().RemoveEnvironment(ctx, "upper")
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Plugins.Rollback": {func(by plugin.Principal) error { _, _, err := a.As(by).Plugins().Rollback(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Delete":   {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Delete(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.MayChange": {func(by plugin.Principal) error { return a.As(by).Plugins().MayChange(ctx, "enable", "upper") },
			missing, plugin.EntryPluginRefused, at},
		"Plugins.May": {func(by plugin.Principal) error {
			return a.As(by).Plugins().May(ctx, "enable", &plugin.Manifest{Name: "upper", Version: "1.0.0"})
		}, denied, plugin.EntryPluginRefused, at},
		"Plugins.Show":    {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Show(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},
		"Plugins.Actions": {func(by plugin.Principal) error { _, err := a.As(by).Plugins().Actions(ctx, "upper"); return err }, missing, plugin.EntryPluginRefused, at},

		"Feeds.Create": {func(by plugin.Principal) error {
			_, err := a.As(by).Feeds().Create(ctx, host.NewFeed{Plugin: "upper/upper", Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{"text":"a"}`), nil }})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Feeds.Show":        {func(by plugin.Principal) error { _, _, _, err := a.As(by).Feeds().Show(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Pause":       {func(by plugin.Principal) error { _, err := a.As(by).Feeds().Pause(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Resume":      {func(by plugin.Principal) error { _, err := a.As(by).Feeds().Resume(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Delete":      {func(by plugin.Principal) error { _, err := a.As(by).Feeds().Delete(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.ResetCursor": {func(by plugin.Principal) error { _, err := a.As(by).Feeds().ResetCursor(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Change": {func(by plugin.Principal) error {
			_, err := a.As(by).Feeds().Change(ctx, feed.ID, host.FeedChange{Spec: "every 2h"})
			return err
		}, missing, plugin.EntryFeedRefused, feed.ID},
		"Feeds.Run": {func(by plugin.Principal) error { _, err := a.As(by).Feeds().Run(ctx, feed.ID); return err }, missing, plugin.EntryFeedRefused, feed.ID},

		"Agents.List": {func(by plugin.Principal) error { _, err := a.As(by).Agents().List(ctx); return err }, denied, plugin.EntryAgentRefused, "*"},
		"Agents.Create": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().Create(ctx, host.NewAgent{ID: "door"})
			return err
		}, denied, plugin.EntryAgentRefused, "door"},
		"Agents.Change": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().Change(ctx, "desk", host.AgentChange{Prompt: new("You rob.")})
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Start":    {func(by plugin.Principal) error { _, err := a.As(by).Agents().Start(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Stop":     {func(by plugin.Principal) error { _, err := a.As(by).Agents().Stop(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Delete":   {func(by plugin.Principal) error { _, err := a.As(by).Agents().Delete(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Remember": {func(by plugin.Principal) error { return a.As(by).Agents().Remember(ctx, "desk", "a", "b") }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Forget":   {func(by plugin.Principal) error { return a.As(by).Agents().Forget(ctx, "desk", "a") }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Schedule": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().Schedule(ctx, "desk", "hello", "every 1h", "")
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Assign": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().Assign(ctx, "upper", "desk", true)
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Assignments": {func(by plugin.Principal) error { _, err := a.As(by).Agents().Assignments(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Get":         {func(by plugin.Principal) error { _, err := a.As(by).Agents().Get(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Show":        {func(by plugin.Principal) error { _, err := a.As(by).Agents().Show(ctx, "desk"); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Memories":    {func(by plugin.Principal) error { _, err := a.As(by).Agents().Memories(ctx, "desk", "", 10); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Conversations": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().Conversations(ctx, "desk", 10)
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Messages": {func(by plugin.Principal) error {
			_, _, err := a.As(by).Agents().Messages(ctx, "desk", talk.Session, 10)
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.Talk": {func(by plugin.Principal) error { _, err := a.As(by).Agents().Talk(ctx, "desk", "", false); return err }, denied, plugin.EntryAgentRefused, "desk"},
		"Agents.End": {func(by plugin.Principal) error {
			_, err := a.As(by).Agents().End(ctx, "desk", talk.Session)
			return err
		}, denied, plugin.EntryAgentRefused, "desk"},

		"Secrets.Set": {func(by plugin.Principal) error {
			_, err := a.As(by).Secrets().Set(ctx, host.SecretPlace{Name: "key", System: true}, "v")
			return err
		}, denied, plugin.EntrySecretRefused, "key"},
		"Secrets.Delete": {func(by plugin.Principal) error {
			_, err := a.As(by).Secrets().Delete(ctx, host.SecretPlace{Name: "key", User: "not here"})
			return err
		}, denied, plugin.EntrySecretRefused, "key"},
		"Secrets.ClientSecret": {func(by plugin.Principal) error {
			_, err := a.As(by).Secrets().ClientSecret(ctx, "tracker", "key")
			return err
		}, denied, plugin.EntrySecretRefused, "key"},
		"Secrets.DeleteAll": {func(by plugin.Principal) error { _, err := a.As(by).Secrets().DeleteAll(ctx); return err }, denied, plugin.EntrySecretRefused, "*"},
		"Secrets.Rotate":    {func(by plugin.Principal) error { _, err := a.As(by).Secrets().Rotate(ctx); return err }, denied, plugin.EntrySecretRefused, "*"},

		"Tokens.Create": {func(by plugin.Principal) error {
			_, _, err := a.As(by).Tokens().Create(ctx, host.NewToken{Name: "mine"})
			return err
		}, denied, plugin.EntryTokenRefused, "mine"},
		"Tokens.Revoke":   {func(by plugin.Principal) error { _, err := a.As(by).Tokens().Revoke(ctx, "abcdefghij"); return err }, plugin.CodeNotFound, plugin.EntryTokenRefused, "abcdefghij"},
		"Users.List":      {func(by plugin.Principal) error { _, err := a.As(by).Users().List(ctx); return err }, denied, plugin.EntryUserRefused, ""},
		"Users.Show":      {func(by plugin.Principal) error { _, err := a.As(by).Users().Show(ctx, "joe"); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Users.Create":    {func(by plugin.Principal) error { _, err := a.As(by).Users().Create(ctx, "joe", ""); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Users.Disable":   {func(by plugin.Principal) error { _, err := a.As(by).Users().Disable(ctx, "joe"); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Users.Enable":    {func(by plugin.Principal) error { _, err := a.As(by).Users().Enable(ctx, "joe"); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Users.Invite":    {func(by plugin.Principal) error { _, _, err := a.As(by).Users().Invite(ctx, "joe"); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Users.Unlink":    {func(by plugin.Principal) error { _, err := a.As(by).Users().Unlink(ctx, "joe", "os:1"); return err }, denied, plugin.EntryUserRefused, "joe"},
		"Tenants.List":    {func(by plugin.Principal) error { _, err := a.As(by).Tenants().List(ctx); return err }, denied, plugin.EntryTenantRefused, ""},
		"Tenants.Show":    {func(by plugin.Principal) error { _, err := a.As(by).Tenants().Show(ctx, "acme"); return err }, denied, plugin.EntryTenantRefused, "acme"},
		"Tenants.Create":  {func(by plugin.Principal) error { _, err := a.As(by).Tenants().Create(ctx, "acme"); return err }, denied, plugin.EntryTenantRefused, "acme"},
		"Tenants.Disable": {func(by plugin.Principal) error { _, err := a.As(by).Tenants().Disable(ctx, "acme"); return err }, denied, plugin.EntryTenantRefused, "acme"},
		"Tenants.Enable":  {func(by plugin.Principal) error { _, err := a.As(by).Tenants().Enable(ctx, "acme"); return err }, denied, plugin.EntryTenantRefused, "acme"},
		"Browsers.End":    {func(by plugin.Principal) error { return a.As(by).Browsers().End(ctx, "abcdefghij") }, plugin.CodeNotFound, plugin.EntryUserRefused, "abcdefghij"},
		"Identities.List": {func(by plugin.Principal) error { _, err := a.As(by).Identities().List(ctx); return err }, denied, plugin.EntryIdentityRefused, ""},
		"Identities.Link": {func(by plugin.Principal) error {
			_, err := a.As(by).Identities().Link(ctx, "mail", "x", "eve")
			return err
		}, denied, plugin.EntryIdentityRefused, "mail:x"},
		"Identities.Unlink": {func(by plugin.Principal) error { _, err := a.As(by).Identities().Unlink(ctx, "mail", "x"); return err }, denied, plugin.EntryIdentityRefused, "mail:x"},

		"Policies.Put": {func(by plugin.Principal) error {
			_, err := a.As(by).Policies().Put(ctx, "mine", []byte("permit (principal, action, resource);"), "")
			return err
		}, denied, plugin.EntryPolicyRefused, "mine"},
		"Policies.Suppose": {func(by plugin.Principal) error {
			_, err := a.As(by).Policies().Suppose(ctx, "mine", []byte("permit (principal, action, resource);"))
			return err
		}, denied, plugin.EntryPolicyRefused, "mine"},
		"Policies.Delete": {func(by plugin.Principal) error { _, err := a.As(by).Policies().Delete(ctx, "mine", ""); return err }, denied, plugin.EntryPolicyRefused, "mine"},
		"Policies.Explain": {func(by plugin.Principal) error {
			_, err := a.As(by).Policies().Explain(ctx, host.PolicyRequest{Operation: "upper/upper"})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Policies.Ask": {func(by plugin.Principal) error {
			_, err := a.As(by).Policies().Ask(ctx, host.PolicyRequest{Operation: "upper", Action: "configure"})
			return err
		}, missing, plugin.EntryPluginRefused, at},
		"Plugins.Resolve": {func(by plugin.Principal) error {
			_, err := a.As(by).Plugins().Resolve(ctx, "upper/upper", "call")
			return err
		},
			missing, plugin.EntryPluginRefused, at},
		"Models.Test": {func(by plugin.Principal) error { _, err := a.As(by).Models().Test(ctx, "small"); return err }, denied, plugin.EntryModelRefused, "small"},
		"Admin.ConfirmRecovery": {func(by plugin.Principal) error {
			_, err := a.As(by).Admin().ConfirmRecovery(ctx, "nothing was done")
			return err
		}, denied, plugin.EntryRecoveryRefused, "recovery"},
		"Admin.Retention":      {func(by plugin.Principal) error { _, err := a.As(by).Admin().Retention(ctx); return err }, denied, plugin.EntryRetentionRefused, "retention"},
		"Admin.ApplyRetention": {func(by plugin.Principal) error { _, err := a.As(by).Admin().ApplyRetention(ctx); return err }, denied, plugin.EntryRetentionRefused, "retention"},
		"Admin.Erase":          {func(by plugin.Principal) error { _, err := a.As(by).Admin().Erase(ctx, "ada", false); return err }, denied, plugin.EntryErasureRefused, "ada"},
		"Admin.Erasures":       {func(by plugin.Principal) error { _, err := a.As(by).Admin().Erasures(ctx); return err }, denied, plugin.EntryErasureRefused, "erasures"},
		"Approvers.MayControl": {func(by plugin.Principal) error {
			return a.Host.Approvers().MayControl(ctx, "local", queued.CallID, by, "cancel")
		}, denied, plugin.EntryControlRefused, queued.CallID},
	}
	if names := slices.Sorted(maps.Keys(attempts)); !slices.Equal(names, slices.Sorted(slices.Values(attempted))) {
		t.Errorf("the attempts are of %q", names)
	}
	// More ways to be refused than one principal has.
	by := map[string]plugin.Principal{}
	also := func(name string, who plugin.Principal, one attempt) { attempts[name], by[name] = one, who }
	also("an agent ends the recovery", plugin.Principal{Type: "agent", ID: "desk", Scopes: []string{"*"}}, attempt{attempts["Admin.ConfirmRecovery"].do, plugin.CodeApprovalSelf, plugin.EntryRecoveryRefused, "recovery"})
	also("no reason, and no right", eve, attempt{func(by plugin.Principal) error { _, err := a.As(by).Admin().ConfirmRecovery(ctx, ""); return err }, denied, plugin.EntryRecoveryRefused, "recovery"})
	also("a feed of what may be seen and not run", vic, attempt{attempts["Feeds.Create"].do, denied, plugin.EntryFeedRefused, "upper/upper"})
	also("the plugin that may be seen", vic, attempt{attempts["Plugins.Enable"].do, denied, plugin.EntryPluginRefused, at})
	kay := plugin.Principal{Type: "user", ID: "kay", Scopes: []string{"*"}}
	also("a turn that may not be run", kay, attempt{attempts["Agents.Schedule"].do, denied, plugin.EntryFeedRefused, "agent.chat/turn"})
	also("the conversation of another", kay, attempt{func(by plugin.Principal) error {
		_, err := a.As(by).Agents().Talk(ctx, "desk", talk.Session, false)
		return err
	}, denied, plugin.EntryAgentRefused, "desk"})
	also("the end of one's own", eve, attempt{func(by plugin.Principal) error { _, err := a.As(by).Agents().End(ctx, "desk", ""); return err }, denied, plugin.EntryAgentRefused, "desk"})
	also("all agents' plugins", eve, attempt{func(by plugin.Principal) error {
		_, err := a.As(by).Agents().Assign(ctx, "upper", store.EveryAgent, true)
		return err
	}, denied, plugin.EntryAgentRefused, "*"})
	also("a policy whose name is none", eve, attempt{func(by plugin.Principal) error {
		_, err := a.As(by).Policies().Put(ctx, "NO\x00name", nil, "")
		return err
	}, denied, plugin.EntryPolicyRefused, "NO?name"})

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
		if e := left[0]; e.Kind != one.kind || e.Subject != one.subject || e.Principal != principal.Name(who) || body.Code != one.code || body.Action == "" || body.Message == "" {
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
