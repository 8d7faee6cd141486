package ledger_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// origins are what makes keys, each of which may put any text into its own.
var origins = map[string]func(text string) plugin.Call{
	"a caller": func(s string) plugin.Call { return plugin.Call{Origin: plugin.OriginCLI, Key: s} },
	"a plan's step": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginPlan, Plan: s, Trace: plugin.Trace{Step: s}}
	},
	"a submission": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginCLI, Key: "plan:" + s, KeyOf: plugin.KeyOfProposal}
	},
	"an event": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginAdapter, Key: "plan:w:" + s, KeyOf: plugin.KeyOfEvent}
	},
	"a reply": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginAgent, Key: "reply:" + s, KeyOf: plugin.KeyOfReply}
	},
	"a plugin's key": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginCall, Key: s, KeyOf: plugin.KeyOfPlugin + "notes"}
	},
	"another plugin's key": func(s string) plugin.Call {
		return plugin.Call{Origin: plugin.OriginCall, Key: s, KeyOf: plugin.KeyOfPlugin + "mail"}
	},
	"a feed's tick":    func(s string) plugin.Call { return plugin.Call{Origin: plugin.OriginFeed, Place: s} },
	"a nested call":    func(s string) plugin.Call { return plugin.Call{Origin: plugin.OriginCall, Place: s} },
	"a hook's call":    func(s string) plugin.Call { return plugin.Call{Origin: plugin.OriginAgent, ID: s} },
	"some new origin":  func(s string) plugin.Call { return plugin.Call{Key: s, KeyOf: "new"} },
	"a second new one": func(s string) plugin.Call { return plugin.Call{Key: s, KeyOf: "newer"} },
}

// TestNoOriginTakesTheKeyOfAnother: whatever text each of them is given, what the
// others' keys are made of included.
func TestNoOriginTakesTheKeyOfAnother(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "x/y", "order-7", "", "w:", "k:", "plan:a", "plan:w:a", "reply:a", "mail/a", "notes/a", "enqueue:a", "plugin/notes"}
	for range 2 { // what is made of these is a text too
		seen := map[string]bool{}
		for _, text := range texts {
			for _, of := range origins {
				call := of(text)
				seen[call.Key], seen[ledger.StoredKey(&call)], seen[ledger.StoredKey(&call)[2:]] = true, true, true
			}
		}
		for text := range seen {
			if len(texts) < 400 {
				texts = append(texts, text)
			}
		}
	}
	from := map[string]string{}
	for name, of := range origins {
		for _, text := range texts {
			call := of(text)
			if call.Key == "" && call.Place == "" && call.Plan == "" && call.ID == "" {
				continue
			}
			key := ledger.StoredKey(&call)
			if other := from[key]; other != "" && other != name {
				t.Errorf("%s and %s both have the key %s", name, other, key)
			}
			from[key] = name
		}
	}
	if len(from) < 1000 {
		t.Errorf("only %d keys were compared", len(from))
	}
}

// callers are the files in which the caller of a call is who chose its key.
var callers = map[string]bool{
	"host/invoke.go": true, "host/decisions.go": true, "surface/check/host.go": true,
}

// TestEveryCallThatHasAKeySaysWhatMadeIt, but for those of callers.
func TestEveryCallThatHasAKeySaysWhatMadeIt(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || fmt.Sprint(lit.Type) != "&{plugin Call}" {
				return true
			}
			has := map[string]bool{}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					has[fmt.Sprint(kv.Key)] = true
				}
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if has["Key"] {
				found++
				if !has["KeyOf"] && !callers[name] {
					t.Errorf("%s: a call has a Key and no KeyOf", set.Position(lit.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || found < 6 {
		t.Errorf("%d calls with keys were found, %v", found, err)
	}
}

// TestCallsOfOlderHostsAreFoundByTheirOrigin: by the key they had then, and no
// call of a caller that has the same key is taken for one of them.
func TestCallsOfOlderHostsAreFoundByTheirOrigin(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir())
	l := openLedger(t, st, ledger.Options{Flush: never})
	for n, name := range []string{"an event", "a reply", "a plugin's key"} {
		now := origins[name]("x")
		now.Tenant, now.ID = "t", "now"
		for _, origin := range []plugin.Origin{plugin.OriginCLI, now.Origin} {
			c := claim(now.Key) // as it was kept then
			c.Call.Origin, c.Target.Operation.Name = origin, fmt.Sprint("send", n, origin)
			take(t, l, c)
			prior, err := l.LookupCall(t.Context(), &now, c.Target.Name())
			if err != nil || (prior != nil) != (origin == now.Origin) {
				t.Errorf("%s: what the origin %s kept under the key %s is found: %t, %v", name, origin, now.Key, prior != nil, err)
			}
		}
	}
}
