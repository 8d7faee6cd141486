package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// sendPart begins a request whose body announces more bytes than it has, and returns its
// connection.
func (b *bench) sendPart(token, method, path, body string, announced int) net.Conn {
	b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testwait.Limit))
	const head = "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	if _, err := fmt.Fprintf(conn, head+"%s", method, path, token, announced, body); err != nil {
		b.Fatal(err)
	}
	return conn
}

// Of a request whose token has not the scope of the route, the body is not waited for, on
// whatever route of the document.
func TestATokenWithoutTheScopeIsRefusedBeforeItsBody(t *testing.T) {
	t.Parallel()
	tools := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request without the scope is passed on") })
	b := begin(t, rest.Options{BodyTime: 300 * time.Millisecond, MCP: func(host.API, host.Caller) http.Handler { return tools }})
	var doc document
	if err := json.Unmarshal(rest.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	begun := map[string]net.Conn{} // all of them first: what is left of a body may have a second to come
	parameter, tried := regexp.MustCompile(`\{[a-z_]+\}`), 0
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var op struct {
				Scope string `json:"x-scope"`
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			if method == "get" || op.Scope == "any" {
				continue
			}
			tried++
			begun[method+" "+path+", which needs "+op.Scope] = b.sendPart("mrt_ann:none", strings.ToUpper(method), parameter.ReplaceAllString(path, "x"), "{", 1000)
		}
	}
	begun[rest.MCPPath] = b.sendPart("mrt_ann:none", "POST", rest.MCPPath, "{", 1000)
	for path, conn := range begun {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(said), `"scope_denied"`) {
			t.Errorf("%s is answered %d %s before its body has come, want 403", path, resp.StatusCode, said)
		}
	}
	if tried < 30 {
		t.Errorf("%d routes were tried", tried)
	}
}

// Bounds of the bodies of these tests.
const (
	largeBody = 180 << 10 // of which 116 KiB count
	bodyRoom  = 1 << 20   // of which a token has 256 KiB and a tenant 384 KiB
)

func beginBodies(t *testing.T) *bench {
	t.Helper()
	return begin(t, rest.Options{MaxInput: 128 << 10, Room: bodyRoom})
}

// large is a body that counts.
func large() string { return `{"input":{"text":"` + strings.Repeat("a", largeBody-100) + `"}}` }

// A length that is only announced takes no room, and neither do small bodies, however many.
func TestAnnouncedBytesTakeNoRoom(t *testing.T) {
	t.Parallel()
	b := beginBodies(t)
	for range 40 {
		b.sendPart("mrt_ann", "POST", line, `{"input":`, largeBody)
	}
	for range 5 {
		b.is(b.ask("mrt_ann", "POST", line, large()), 200, "succeeded")
		b.is(b.ask("mrt_bobs", "POST", line, `{"input":{"text":"small"}}`), 200, "succeeded")
	}
}

// One token holds no more than its share of the bytes, and others have theirs meanwhile.
func TestATokenHoldsItsShareOfBodies(t *testing.T) {
	t.Parallel()
	b := beginBodies(t)
	for range 17 {
		b.sendPart("mrt_ann", "POST", line, large(), largeBody)
	}
	var refused answer
	testwait.Until(t, "the share of the token is used up", func() bool {
		if refused = b.ask("mrt_ann", "POST", line, large()); refused.status == 429 {
			return true
		}
		b.sendPart("mrt_ann", "POST", line, large(), largeBody) // one of the others may have been refused beside this request
		return false
	})
	b.is(refused, 429, "rate_limited")
	if refused.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q, want 1", refused.header.Get("Retry-After"))
	}
	for range 24 {
		b.is(b.ask("mrt_bobs", "POST", line, large()), 200, "succeeded")
	}
	b.is(b.ask("mrt_ann", "POST", line, `{"input":{"text":"small"}}`), 200, "succeeded")
}

// The tokens of one tenant hold no more together than its share.
func TestATenantHoldsItsShareOfBodies(t *testing.T) {
	t.Parallel()
	b := beginBodies(t)
	of, first := b.tenant("acme")
	tokens := []string{first}
	for range 3 {
		_, secret, err := of.As(of.Principal).Tokens().Create(t.Context(), host.NewToken{Name: "more", Scopes: host.Scopes})
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, secret)
	}
	const route = "/api/v1/operations:route"
	for _, token := range tokens {
		b.sendPart(token, "POST", route, large(), largeBody)
	}
	testwait.Until(t, "the share of the tenant is used up", func() bool {
		if a := b.ask(tokens[3], "POST", route, large()); a.status == 429 && strings.Contains(a.text, "of a tenant") {
			return true
		}
		b.sendPart(tokens[0], "POST", route, large(), largeBody) // likewise
		return false
	})
	for range 10 {
		b.is(b.ask("mrt_ann", "POST", line, large()), 200, "succeeded")
	}
}

// Bodies of all callers have a bound, too, and what has ended makes room.
func TestAllBodiesHaveABound(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{MaxInput: 128 << 10, Room: 200 << 10})
	var refused answer
	slow := b.sendPart("mrt_ann", "POST", line, large(), largeBody)
	testwait.Until(t, "there is no room", func() bool {
		if refused = b.ask("mrt_bobs", "POST", line, large()); refused.status == 503 {
			return true
		}
		slow.Close() // it may have come while there was no room, and have been refused
		slow = b.sendPart("mrt_ann", "POST", line, large(), largeBody)
		return false
	})
	b.is(refused, 503, "overloaded")
	b.is(b.ask("mrt_bobs", "POST", line, `{"input":{"text":"small"}}`), 200, "succeeded")
	slow.Close()
	testwait.Until(t, "there is room again", func() bool { return b.ask("mrt_bobs", "POST", line, large()).status == 200 })
}
