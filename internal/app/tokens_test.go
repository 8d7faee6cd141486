package app_test

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// tokenHome is a data directory that knows root, ann, bob and the service ci. What gate
// says of a call, where it says something, is approved by root, ann or bob.
func tokenHome(t *testing.T, gate string) *app.App {
	t.Helper()
	home := t.TempDir()
	write(t, home, "mortise.yaml", "principal: root\napprovals: {by: [root, ann, bob]}\npolicy: {files: [policies], groups: {staff: [ann, bob, \"service::ci\"]}}\n")
	write(t, home, "policies/all.cedar", `
@id("all") permit (principal, action, resource) unless { action == Action::"configure" || action == Action::"execute" };
@id("root") permit (principal == User::"root", action, resource) unless { action == Action::"execute" };
@id("tokens") permit (principal == User::"ann", action == Action::"configure", resource == Plugin::"mortise.tokens");
@id("gate") `+gate+` permit (principal, action == Action::"execute", resource);
`)
	a := open(t, home)
	register(t, a, upper(t), false)
	return a
}

// A token in force stands for its principal with its scopes; what is not quite one is
// refused, in one form of words.
func TestATokenStandsForItsPrincipal(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	ctx := t.Context()
	root := a.Host.As(plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}})
	create := func(n host.NewToken) (host.Token, string) {
		t.Helper()
		made, text, err := root.Tokens().Create(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^` + host.TokenPattern + `$`).MatchString(text) {
			t.Errorf("a token is %q, which a scanner of secrets does not know", text)
		}
		return made, text
	}
	auth := a.Host.Authenticator()
	made, text := create(host.NewToken{Name: "laptop", For: "ann", Scopes: []string{"read", "run"}, Operations: []string{"upper/*"}})
	c, err := auth.Token(ctx, text, "127.0.0.1")
	if err != nil || c.Principal.ID != "ann" || c.Token != made.ID || !c.Has(host.ScopeRun) || c.Has(host.ScopeApprove) || c.Asker != "user:ann from "+host.OSUser() {
		t.Fatalf("the caller is %+v, %v", c, err)
	}
	_, service := create(host.NewToken{Name: "ci", For: "service::ci", Scopes: []string{"admin"}})
	if c, err := auth.Token(ctx, service, "127.0.0.1"); err != nil || c.Principal.Member() != "service::ci" || !c.Has(host.ScopeApprove) {
		t.Fatalf("the service is %+v, %v", c, err)
	}
	for range 2 { // used at most once a minute
		listed, err := root.Tokens().List(ctx)
		if err != nil || len(listed) != 2 {
			t.Fatal(listed, err)
		}
		for _, l := range listed {
			if l.UsedAt.IsZero() || l.UsedFrom != "127.0.0.1" || !l.Shared {
				t.Errorf("listed as %+v", l)
			}
		}
	}
	gone, goneText := create(host.NewToken{Name: "gone", For: "ann"})
	if _, err := root.Tokens().Revoke(ctx, gone.ID); err != nil {
		t.Fatal(err)
	}
	_, short := create(host.NewToken{Name: "short", For: "ann", Life: time.Nanosecond})
	other := text[:len(text)-7]
	other = other[:len(other)-1] + string('a'+(other[len(other)-1]-'a'+1)%26)
	for name, wrong := range map[string]string{
		"none": "", "another word": "ann", "revoked": goneText, "expired": short, "of another secret": other + text[len(text)-7:],
		"a typing error": strings.Replace(text, "_", "-", 1), "its id alone": text[:15], "with more behind it": text + "x",
		"a known id, another secret": withChecksum(other), "an unknown id": withChecksum("mrt_uAAAAAAAAAA_" + strings.Repeat("B", 32)),
	} {
		c, err := auth.Token(ctx, wrong, "127.0.0.2")
		if plugin.CodeOf(err) != plugin.CodeUnauthenticated || c.Token != "" || err.Error() != "unauthenticated: the token is not valid; 'mortise tokens create' makes one" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	now := time.Now()
	auth.Now = func() time.Time { return now } // no bucket fills
	for range 2000 {
		if _, err = auth.Token(ctx, "guess", "127.0.0.3"); plugin.CodeOf(err) == plugin.CodeRateLimited {
			break
		}
	}
	var limited *plugin.Error
	if !errors.As(err, &limited) || limited.RetryAfter <= 0 {
		t.Errorf("an address guesses without end: %v", err)
	}
	if _, err := auth.Token(ctx, service, "127.0.0.1"); err != nil {
		t.Errorf("the guesses of one address are held against another: %v", err)
	}
}

// withChecksum completes what has all of a token but the checksum.
func withChecksum(body string) string {
	digits := big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))).Text(62)
	return body + "_" + strings.Repeat("0", 6-len(digits)) + digits
}

// A token that is revoked is refused a second later, also by a host that knew it, and one
// whose principal the configuration no longer names.
func TestARevokedTokenIsRefusedWithinASecond(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	ctx := t.Context()
	root := a.Host.As(plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}})
	made, text, err := root.Tokens().Create(ctx, host.NewToken{Name: "laptop", For: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	auth := a.Host.Authenticator()
	caller, err := auth.Token(ctx, text, "")
	if err != nil {
		t.Fatal(err)
	}
	// Its principal may end it, without a right to configure.
	if _, err := a.Host.For(caller).Tokens().Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	auth.Now = func() time.Time { return time.Now().Add(time.Second + 1) }
	if _, err := auth.Token(ctx, text, ""); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("a second after it was revoked, the token is answered %v", err)
	}
	_, text, err = root.Tokens().Create(ctx, host.NewToken{Name: "laptop", For: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	home := a.Home
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, home, "mortise.yaml", "principal: root\npolicy: {files: [policies]}\n")
	again := open(t, home)
	if _, err := again.Host.Authenticator().Token(ctx, text, ""); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("bob, whom the configuration does not name, has a token: %v", err)
	}
}

// A token is for what it says: its scopes, its operations, and no token with more.
func TestATokenIsForWhatItSays(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	ctx := t.Context()
	invoke := func(c host.Caller, op string) error {
		_, err := a.Host.For(c).Invoke(ctx, host.Invocation{Operation: op, Input: json.RawMessage(`{"text":"a"}`), Origin: plugin.OriginCLI})
		return err
	}
	caller := host.Caller{Principal: plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}, Asker: "user:root", Token: "t1", Scopes: []string{"run"}, Operations: []string{"upper/*"}}
	if err := invoke(caller, "upper/upper"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*host.Caller){
		"another operation": func(c *host.Caller) { c.Operations = []string{"upper/lower", "up/*"} },
		"no scope":          func(c *host.Caller) { c.Scopes = []string{"read", "approve", "configure"} },
	} {
		before := len(entries(t, a))
		c := caller
		change(&c)
		if err := invoke(c, "upper/upper"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s: %v", name, err)
		}
		if all := entries(t, a); len(all) != before+1 || all[before] != "token.refused t1" {
			t.Errorf("%s: the entries are %v", name, all[before:])
		}
	}
	if err := invoke(caller, "absent/op"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("an operation that there is not: %v", err)
	}
	made, text, err := a.As(caller.Principal).Tokens().Create(ctx, host.NewToken{Name: "maker", Scopes: []string{"admin"}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if caller, err = a.Host.Authenticator().Token(ctx, text, "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	narrow, listed := caller, caller
	narrow.Scopes, listed.Operations = []string{"read", "run", "decide", "approve", "configure"}, []string{"upper/*"}
	for name, bounded := range map[string]host.Caller{"not the scope admin": narrow, "a list of operations": listed} {
		if _, _, err := a.Host.For(bounded).Tokens().Create(ctx, host.NewToken{Name: "x", Operations: []string{"upper/upper"}}); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("a token with %s makes one: %v", name, err)
		}
	}
	for name, n := range map[string]host.NewToken{
		"a longer life": {Name: "x", Operations: []string{"upper/*"}, Life: 2 * time.Hour},
		"no end":        {Name: "x", Operations: []string{"upper/*"}, Life: -1},
	} {
		if _, _, err := a.Host.For(caller).Tokens().Create(ctx, n); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	less, _, err := a.Host.For(caller).Tokens().Create(ctx, host.NewToken{Name: "x", Operations: []string{"upper/upper"}})
	if err != nil || !less.ExpiresAt.Equal(made.ExpiresAt) {
		t.Errorf("a token that has less ends at %s, %v; the one that made it at %s", less.ExpiresAt, err, made.ExpiresAt)
	}
	// A token that was revoked makes none in the second for which it is still believed.
	if _, err := a.As(caller.Principal).Tokens().Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Host.For(caller).Tokens().Create(ctx, host.NewToken{Name: "x", Operations: []string{"upper/*"}}); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("a revoked token makes one: %v", err)
	}
	// Who may configure tokens makes none for the administrator.
	ann := plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}
	if _, _, err := a.As(ann).Tokens().Create(ctx, host.NewToken{Name: "bob's", For: "bob"}); err != nil {
		t.Errorf("ann, who may configure tokens: %v", err)
	}
	if _, _, err := a.As(ann).Tokens().Create(ctx, host.NewToken{Name: "root's", For: "root"}); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("ann makes a token for the administrator: %v", err)
	}
	for name, n := range map[string]host.NewToken{
		"no name": {}, "a name of two lines": {Name: "a\nb"}, "a scope that there is not": {Name: "a", Scopes: []string{"fly"}}, "an operation that is none": {Name: "a", Operations: []string{"*"}},
	} {
		if _, _, err := a.As(caller.Principal).Tokens().Create(ctx, n); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who asks does not approve: not by --as, not by a second token, not by a token that they
// created for another. A second person does, and so does one whose token is their own.
func TestASecondPersonIsAnAuthenticatedOne(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, `@approval("it is gated")`)
	ctx := t.Context()
	user := func(name string) plugin.Principal {
		return plugin.Principal{Type: "user", ID: name, Scopes: []string{"*"}}
	}
	auth := a.Host.Authenticator()
	token := func(name string) (host.API, string) {
		t.Helper()
		_, text, err := a.As(user("root")).Tokens().Create(ctx, host.NewToken{Name: name + "'s", For: name, Scopes: []string{"run", "approve"}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := auth.Token(ctx, text, "")
		if err != nil {
			t.Fatal(err)
		}
		return a.Host.For(c), text
	}
	annsFirst, _ := token("ann")
	annsSecond, _ := token("ann")
	bobs, _ := token("bob")
	fresh, _ := token("bob")
	_, text, err := fresh.Tokens().Rotate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := auth.Token(ctx, text, "")
	if err != nil || c.Asker != "user:bob" {
		t.Fatalf("a rotated token is %+v, %v", c, err)
	}
	bobsOwn := a.Host.For(c)
	// The secret that was rotated rotates nothing, however the caller was authenticated
	// before; nor does one of a token that was revoked. Of many at once one counts.
	if _, _, err := fresh.Tokens().Rotate(ctx); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("a secret that was rotated takes the token back: %v", err)
	}
	if again, err := auth.Token(ctx, text, ""); err != nil || again.Asker != "user:bob" {
		t.Errorf("the rotated token is %+v, %v", again, err)
	}
	racing, _ := token("bob")
	results := make(chan error)
	for range 20 {
		go func() { _, _, err := racing.Tokens().Rotate(ctx); results <- err }()
	}
	rotated := 0
	for range 20 {
		if err := <-results; err == nil {
			rotated++
		} else if plugin.CodeOf(err) != plugin.CodeUnauthenticated {
			t.Error(err)
		}
	}
	if rotated != 1 {
		t.Errorf("%d of 20 rotations at once gave a secret", rotated)
	}
	made, text2, err := a.As(user("root")).Tokens().Create(ctx, host.NewToken{Name: "gone", For: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := auth.Token(ctx, text2, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.As(user("root")).Tokens().Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Host.For(revoked).Tokens().Rotate(ctx); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("a token that was revoked is rotated: %v", err)
	}
	if _, _, err := a.As(user("bob")).Tokens().Rotate(ctx); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("who presents no token rotates one: %v", err)
	}
	atTerminal := func(name string) host.API { return a.As(user(name)) }
	for name, c := range map[string]struct {
		asker, who string // as the approval has them
		answers    host.API
		may        bool
	}{
		"--as":                       {host.OSUser(), "root", atTerminal("ann"), false},
		"their second token":         {"user:ann", "ann", annsSecond, false},
		"the same token":             {"user:ann", "ann", annsFirst, false},
		"a token they made":          {host.OSUser(), "root", bobs, false},
		"asked by a token they made": {"user:ann from " + host.OSUser(), "ann", atTerminal("bob"), false},
		"a second person":            {"user:ann from " + host.OSUser(), "ann", bobs, true},
		"whose token is their own":   {host.OSUser(), "root", bobsOwn, true},
	} {
		res, err := a.Kernel.Call(ctx, plugin.Call{
			Tenant: "local", Principal: user(c.who), Asker: c.asker, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Key: name, NoWait: true,
		})
		if err != nil || res.Approval == nil {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		_, _, err = c.answers.Approvals().Decide(ctx, res.Approval.ID, true, false, "")
		want := plugin.CodeApprovalSelf
		if c.may {
			want = ""
		}
		if plugin.CodeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
