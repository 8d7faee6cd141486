package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// unseenAt returns a host with the plugin hid, of which eve may see nothing, and the
// plugin part, of which she may see one operation; vic may see and not run any.
func unseenAt(t *testing.T) *app.App {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	write(t, home, "mortise.yaml", "policy: {files: [unseen.cedar]}\n", "unseen.cedar", `
@id("hidden") forbid (principal == User::"eve", action, resource in Plugin::"hid");
@id("shut") forbid (principal == User::"eve", action, resource == Operation::"part/shut");
@id("waiting") forbid (principal == User::"eve", action, resource in Plugin::"idl");
@id("looks") permit (principal == User::"vic", action == Action::"list", resource);
@id("idle") forbid (principal == User::"vic", action == Action::"execute", resource);
`)
	a := open(t, home)
	for name, more := range map[string]string{
		"hid":  "operations:\n  op: {kind: tool, description: One., input: {type: object, required: [n]}, output: {type: object}, permissions: [deep]}\n  other: {kind: tool, description: Two., input: {type: object}, output: {type: object}}\n",
		"idl":  "operations:\n  op: {kind: tool, description: One., input: {type: object}, output: {type: object}}\n",
		"part": "operations:\n  open: {kind: tool, description: One., input: {type: object}, output: {type: object}}\n  shut: {kind: tool, description: Two., input: {type: object}, output: {type: object}}\n",
	} {
		dir := t.TempDir()
		write(t, dir, "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\n%srunner: {kind: process, command: [%q, plugin]}\n", name, more, self))
		register(t, a, dir, false)
	}
	if _, err := a.Registry.Disable(t.Context(), "idl"); err != nil {
		t.Fatal(err)
	}
	return a
}

// An inquiry is one way to ask the host about a reference.
type inquiry struct {
	ask   func(ctx context.Context, k host.API, by plugin.Principal, ref string) error
	whole bool // a plugin is meant, and not one of its operations
}

func inquiriesOf(a *app.App) map[string]inquiry {
	ways := map[string]inquiry{
		"a call": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			res, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: by, Origin: plugin.OriginCLI, Operation: ref, Input: json.RawMessage(`{}`)})
			if err != nil && (res.Operation != "" || res.Version != "" || res.DryRun != nil) {
				err = fmt.Errorf("%w, with %s %s %v", err, res.Operation, res.Version, res.DryRun)
			}
			return err
		}},
		"a call with a key": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			_, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: by, Origin: plugin.OriginCLI, Operation: ref, Key: "k", Input: json.RawMessage(`[`)})
			return err
		}},
		"a call that a plugin makes": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			_, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: by, Actor: "plugin:upper", Depth: 1, Origin: plugin.OriginCall, Operation: ref})
			return err
		}},
		"a call that is enqueued": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			_, err := a.Kernel.Call(ctx, plugin.Call{Tenant: "local", Principal: by, Actor: "plugin:upper", Depth: 1, Origin: plugin.OriginCall, NoWait: true, Operation: ref})
			return err
		}},
		"a dry run": {ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			_, err := k.Invoke(ctx, host.Invocation{Operation: ref, Dry: host.DryAll, Origin: plugin.OriginCLI})
			return err
		}},
		"what it means": {ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			if got, t := k.Plugins().Operation(ctx, ref, nil); t != nil {
				return fmt.Errorf("%s is %s", ref, got)
			}
			return nil
		}},
		"a plan": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			_, err := a.Plans.Submit(ctx, plan.Submission{Tenant: "local", Principal: by, Agent: ref, Origin: plugin.OriginCLI, Input: json.RawMessage(`{}`)})
			return err
		}},
		"an adapter": {ask: func(ctx context.Context, _ host.API, by plugin.Principal, ref string) error {
			_, err := a.Adapters.Deliver(ctx, adapter.Delivery{Tenant: "local", By: by, Adapter: ref, Origin: plugin.OriginCLI, Event: json.RawMessage(`{}`)})
			return err
		}},
		"a feed": {ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			_, err := k.Feeds().Create(ctx, host.NewFeed{Plugin: ref, Input: func(*plugin.Target) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }})
			return err
		}},
		"Plugins.Resolve": {ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			_, err := k.Plugins().Resolve(ctx, ref, "call")
			return err
		}},
	}
	for _, action := range []host.PolicyAction{"execute", "list", "approve"} {
		ways["policy explain "+string(action)] = inquiry{ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			_, err := k.Policies().Explain(ctx, host.PolicyRequest{Action: action, Operation: ref})
			return err
		}}
		ways["policy can "+string(action)] = inquiry{ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error {
			_, err := k.Policies().Ask(ctx, host.PolicyRequest{Action: action, Operation: ref})
			return err
		}}
	}
	for name, do := range map[string]func(ctx context.Context, k host.API, ref string) error{
		"policy can configure": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Policies().Ask(ctx, host.PolicyRequest{Action: "configure", Operation: ref})
			return err
		},
		"Plugins.Show": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Show(ctx, ref)
			return err
		},
		"Plugins.Actions": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Actions(ctx, ref)
			return err
		},
		"Plugins.Enable": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Enable(ctx, ref)
			return err
		},
		"Plugins.Disable": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Disable(ctx, ref)
			return err
		},
		"Plugins.Delete": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Delete(ctx, ref)
			return err
		},
		"Plugins.Rollback": func(ctx context.Context, k host.API, ref string) error {
			_, _, err := k.Plugins().Rollback(ctx, ref)
			return err
		},
		"Plugins.Review": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Review(ctx, ref, false)
			return err
		},
		"Plugins.Review, asking": func(ctx context.Context, k host.API, ref string) error {
			_, err := k.Plugins().Review(ctx, ref, true)
			return err
		},
		"Plugins.Approve": func(ctx context.Context, k host.API, ref string) error {
			name, version, _ := strings.Cut(ref, "@")
			_, err := k.Plugins().Approve(ctx, registry.Review{Name: name, Version: version})
			return err
		},
		"Plugins.MayChange": func(ctx context.Context, k host.API, ref string) error {
			return k.Plugins().MayChange(ctx, "enable", ref)
		},
	} {
		ways[name] = inquiry{whole: true, ask: func(ctx context.Context, k host.API, _ plugin.Principal, ref string) error { return do(ctx, k, ref) }}
	}
	return ways
}

// What a principal may neither list nor execute answers as what there is not, by
// whatever way it is asked for; who may list it is told that policy forbids the rest.
func TestNoAnswerTellsAHiddenPluginFromNone(t *testing.T) {
	t.Parallel()
	a := unseenAt(t)
	eve, vic := plugin.Principal{Type: "user", ID: "eve"}, plugin.Principal{Type: "user", ID: "vic", Scopes: []string{"*"}}
	pairs := []struct{ hidden, none string }{
		{"hid", "nay"}, {"hid@9.9", "nay@9.9"}, {"hid@1.0.0", "nay@1.0.0"}, {"hid@=1.0.0", "nay@=1.0.0"}, {"hie", "nae"}, {"HID", "NAY"}, {"idl", "nay"}, {"idl@1.0.0", "nay@1.0.0"},
		{"hid/op", "nay/op"}, {"hid/zzz", "nay/zzz"}, {"hid/op@1.0.0", "nay/op@1.0.0"}, {"hid/op@9.9", "nay/op@9.9"}, {"idl/op", "nay/op"},
		{"part/shut", "part/nope"}, {"part/shux", "part/nopx"}, {"part/shut@1.0.0", "part/nope@1.0.0"},
	}
	for name, w := range inquiriesOf(a) {
		for _, pair := range pairs {
			if w.whole && strings.Contains(pair.hidden, "/") {
				continue
			}
			ctx, k := t.Context(), a.As(eve)
			its, none := w.ask(ctx, k, eve, pair.hidden), w.ask(ctx, k, eve, pair.none)
			if plugin.CodeOf(its) != plugin.CodeOf(none) || likeNone(its, pair.hidden) != likeNone(none, pair.none) {
				t.Errorf("%s of %s: %v; of %s: %v", name, pair.hidden, its, pair.none, none)
			}
			if none == nil && name != "what it means" {
				t.Errorf("%s of %s is no error", name, pair.none)
			}
		}
		seen := w.ask(t.Context(), a.As(vic), vic, "hid")
		if seen != nil && strings.Contains(seen.Error(), "no plugin is called") {
			t.Errorf("%s, for who may list it: %v", name, seen)
		}
	}
	call := plugin.Call{Tenant: "local", Principal: vic, Origin: plugin.OriginCLI, Operation: "hid/other"}
	if _, err := a.Kernel.Call(t.Context(), call); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("who may list it and not run it: %v", err)
	}
	call.Principal = eve
	res, err := a.Kernel.Call(t.Context(), call)
	all, listErr := a.Ledger.List(t.Context(), ledger.Filter{Kind: string(plugin.EntryCallRefused), Limit: 1000})
	if listErr != nil {
		t.Fatal(listErr)
	}
	recorded := slices.ContainsFunc(all, func(e plugin.Entry) bool {
		return e.Subject == res.CallID && strings.Contains(string(e.Body), string(plugin.CodePolicyDenied))
	})
	if plugin.CodeOf(err) != plugin.CodeNotFound || !recorded {
		t.Errorf("%v; the true reason is on record: %t", err, recorded)
	}
}

// likeNone is what an error says, with a name for what was asked for.
func likeNone(err error, ref string) string {
	if err == nil {
		return ""
	}
	name, _, _ := strings.Cut(ref, "@")
	first, op, _ := strings.Cut(name, "/")
	text := strings.ReplaceAll(err.Error(), ref, "REF")
	if op != "" {
		text = strings.ReplaceAll(text, op, "OP")
	}
	if first != "part" {
		text = strings.ReplaceAll(text, first, "NAME")
	}
	return text
}
