package rest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// lettingIn are the ways in which someone is let in as a principal, each with a request that
// does it. What they write is in writersOfWaysIn.
var lettingIn = map[string]struct{ method, path, body string }{
	"a user":                       {"POST", "/api/v1/users", `{"principal":"ann"}`},
	"an invitation":                {"POST", "/api/v1/users/ben:invite", `{}`},
	"an identity link":             {"POST", "/api/v1/identities:link", `{"provider":"mail","external_id":"a@example.org","principal":"ann","scopes":["desk:use"]}`},
	"a token":                      {"POST", "/api/v1/tokens", `{"name":"ci","for":"ben","scopes":["read"],"operations":["desk/upper"]}`},
	"a token of one's own":         {"POST", "/api/v1/tokens", `{"name":"mine","scopes":["read"],"operations":["desk/upper"]}`},
	"an agent with a channel":      {"POST", "/api/v1/agents", `{"id":"front","settings":{"channels":{"mail":{"scheme":"standard","secret":"mail-secret"}}}}`},
	"a channel":                    {"PATCH", "/api/v1/agents/helper", `{"settings":{"channels":{"mail":{"scheme":"standard","secret":"mail-secret"}}}}`},
	"the secret of a channel":      {"PUT", "/api/v1/secrets/door-secret?system=true", `{"value":"known"}`},
	"the next secret of a channel": {"PUT", "/api/v1/secrets/door-secret.next?system=true", `{"value":"known"}`},
}

// Who may not let others in cannot do it in any way: not with the scope configure, and not with
// the scope admin and a list of operations. Who may can do all of it.
func TestLettingInTakesTheScopeAdminWithoutAList(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	root := b.app.As(person("root"))
	if _, err := root.Users().Create(t.Context(), "ben", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Agents().Create(t.Context(), host.NewAgent{ID: "helper"}); err != nil {
		t.Fatal(err)
	}
	settings, err := host.ParseAgentSettings([]byte(`{"channels":{"door":{"scheme":"standard","secret":"door-secret"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Agents().Create(t.Context(), host.NewAgent{ID: "porter", Settings: settings}); err != nil {
		t.Fatal(err)
	}
	for name, way := range lettingIn {
		tag := b.ask("mrt_root", "GET", strings.Split(way.path, ":")[0], "").header.Get("ETag") // of what is changed, if it is asked for
		for _, token := range []string{"mrt_root:configure", "mrt_root:configure+run+read+approve", "mrt_few"} {
			if a := b.ask(token, way.method, way.path, way.body, "If-Match", tag); a.status != 403 {
				t.Errorf("%s with %s is answered %s", name, token, a)
			}
		}
		if a := b.ask("mrt_root", way.method, way.path, way.body, "If-Match", tag); a.status != 200 {
			t.Errorf("%s with the scope admin is answered %s", name, a)
		}
	}
}

// writersOfWaysIn are the functions that write what lets someone in, each with why it may.
var writersOfWaysIn = map[string]string{
	"Agents.Create":      "an agent with a channel",
	"Agents.change":      "a channel: Agents.Change asks before it",
	"Users.put":          "a user, an invitation: Users.change asks before it",
	"SignIns.whose":      "who presents an open invitation",
	"SignIns.BeginOwner": "the owner, as the user of the operating system who runs the host",
	"SignIns.begin":      "who signed in as a user that there is",
	"SignIns.Own":        "the user themselves, of the account with which they are signed in",
	"Tokens.Create":      "a token",
	"Tokens.change":      "a token that there is, which gets no wider: it is rotated or revoked",
	"Identities.Link":    "an identity link",
}

// A function of package host that writes a way in and is not in the table above is one that
// the test above does not try.
func TestEveryWayInIsTried(t *testing.T) {
	files, err := filepath.Glob("../../host/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Body == nil || strings.HasSuffix(file, "_test.go") {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is {
					return true
				}
				if to, is := call.Fun.(*ast.SelectorExpr); is {
					switch to.Sel.Name {
					case "PutUser", "PutToken", "PutIdentity", "InsertAgent", "UpdateAgent", "InsertBrowserSession":
						found[receiverOf(f)+f.Name.Name] = true
					}
				}
				return true
			})
		}
	}
	for name := range found {
		if writersOfWaysIn[name] == "" {
			t.Errorf("%s lets someone in: say in writersOfWaysIn why it may, and try it in lettingIn", name)
		}
	}
	for name := range writersOfWaysIn {
		if !found[name] {
			t.Errorf("%s writes nothing that lets someone in", name)
		}
	}
}

// receiverOf returns the name of the type whose method a function is, with a dot.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if name, is := of.(*ast.Ident); is {
		return name.Name + "."
	}
	return ""
}
