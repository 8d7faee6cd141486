package principal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// No two principals have one name, and a name is of one principal.
func TestNoTwoPrincipalsHaveOneName(t *testing.T) {
	names := map[string]plugin.Principal{}
	ids := []string{"ci", "user::ci", "service::ci", "agent::ci", "service::user::ci", "user::service::ci", "user::user::ci", "Service::ci", ":", "::", "a:b", ""}
	for _, kind := range []string{"user", "service", "agent"} {
		for _, id := range ids {
			who := plugin.Principal{Type: kind, ID: id}
			name := principal.Name(who)
			if other, taken := names[name]; taken {
				t.Errorf("%q is the name of %+v and of %+v", name, other, who)
			}
			names[name] = who
			if back := principal.Parse(name); back.Type != who.Type || back.ID != who.ID {
				t.Errorf("%q, the name of %+v, is read as %+v", name, who, back)
			}
		}
	}
}

// Two principals of whom anything is known otherwise have two keys: what is remembered of what
// one may do is not what the other may. A member that is added to a principal is in its key.
func TestAKeyHasAllThatIsKnownOfAPrincipal(t *testing.T) {
	base := plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"a"}, Groups: []string{"g"}}
	if principal.Key(base) != principal.Key(plugin.Principal{ID: "ann", Scopes: []string{"a"}, Groups: []string{"g"}}) {
		t.Error("a principal without a type is not a user")
	}
	for i := range reflect.TypeFor[plugin.Principal]().NumField() {
		other := base
		field := reflect.ValueOf(&other).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("service")
		case reflect.Slice:
			field.Set(reflect.ValueOf([]string{"another"}))
		default:
			t.Fatalf("say here how %s is changed", reflect.TypeFor[plugin.Principal]().Field(i).Name)
		}
		if principal.Key(other) == principal.Key(base) {
			t.Errorf("%+v and %+v have one key", base, other)
		}
	}
}

// idAlone are the places that use the id of a principal without its type, each with why no two
// principals are taken for one there.
var idAlone = map[string]string{
	"internal/agent/plan/run.go":          "rows of before, whose order has the type",
	"internal/agent/schedule/engine.go":   "beside the type",
	"internal/app/accounts.go":            "beside the type",
	"internal/core/approval/service.go":   "whether there is one",
	"internal/core/kernel/lookup.go":      "rows of before, whose fingerprint has the type",
	"internal/core/kernel/resolve.go":     "whether there is one",
	"internal/core/policy/actor.go":       "beside the type",
	"internal/core/policy/subject.go":     "beside the type",
	"internal/host/approvers.go":          "beside the type",
	"internal/host/browser.go":            "beside the type",
	"internal/host/erasure.go":            "beside the type",
	"internal/host/feeds.go":              "beside the type",
	"internal/host/identities.go":         "beside the type",
	"internal/host/tokens.go":             "beside the type",
	"internal/host/users.go":              "beside the type",
	"internal/service/identity.go":        "what the contracts call user_id; links are found beside the type",
	"internal/store/sqlstore/erasure.go":  "beside the type",
	"internal/surface/rest/plugins.go":    "what a contract calls user_id, which only narrows",
	"internal/service/account/connect.go": "the id of an account, which is no principal",
}

// A principal is a type and an id. A place that uses the id alone, in a row, an entry, a cache or
// a message, takes service::ci for the user ci, unless it is listed above with its reason.
func TestNoPlaceUsesTheIDAlone(t *testing.T) {
	used := map[string]bool{}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		ast.Inspect(file, func(n ast.Node) bool {
			id, is := n.(*ast.SelectorExpr)
			if !is || id.Sel.Name != "ID" || !principals[last(id.X)] {
				return true
			}
			used[name] = true
			if idAlone[name] == "" {
				t.Errorf("%s uses the id of a principal alone: write Member(), or say in idAlone why the type does not matter", set.Position(id.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range idAlone {
		if !used[name] && why != "" {
			t.Errorf("%s, listed because %q, uses no id of a principal", name, why)
		}
	}
}

// principals are what a principal is called in the code.
var principals = map[string]bool{"Principal": true, "by": true, "By": true, "who": true, "owner": true, "Owner": true, "caller": true, "person": true, "holder": true}

func last(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return fmt.Sprintf("%T", x)
}
