package rest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// An exchange is a request that docs/api.md shows, with its answer.
type exchange struct {
	line         int
	method, path string
	headers      []string
	body         string
	status       int
	answered     map[string]string
	answer       string
}

// asks is how a request begins.
var asks = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) /`)

func exchanges(t *testing.T) (all []*exchange) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var e *exchange
	inBody := false
	for n, line := range strings.Split(string(page), "\n") {
		sent, request := strings.CutPrefix(line, ">")
		came, response := strings.CutPrefix(line, "< ")
		sent = strings.TrimSpace(sent)
		text := came
		if request {
			text = sent
		}
		name, value, header := strings.Cut(text, ": ")
		header = header && !strings.ContainsAny(name, "{\" ")
		switch {
		case request && asks.MatchString(sent):
			e, inBody = &exchange{line: n + 1, answered: map[string]string{}}, false
			e.method, e.path, _ = strings.Cut(sent, " ")
			all = append(all, e)
		case request && sent == "":
			inBody = true
		case request && !inBody:
			e.headers = append(e.headers, name, value)
		case request:
			e.body += sent
		case response && e.status == 0:
			if _, err := fmt.Sscan(came, &e.status); err != nil {
				t.Fatalf("docs/api.md:%d: %v", n+1, err)
			}
		case response && header && e.answer == "":
			e.answered[name] = value
		case response:
			e.answer += came
		}
	}
	return all
}

// Every exchange that docs/api.md shows is so.
func TestTheExchangesOfThePage(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	all := exchanges(t)
	if len(all) < 10 {
		t.Fatalf("the page has %d exchanges", len(all))
	}
	call, id, tag, version := "", "", "", "" // of the last answers that have one
	for _, e := range all {
		token := "mrt_ann"
		if strings.HasPrefix(e.path, "/api/v1/agents") || strings.HasPrefix(e.path, "/api/v1/policies/") || e.method+e.path == "POST/api/v1/tokens" {
			token = "mrt_root" // who may configure them
		}
		known := strings.NewReplacer("$CALL", call, "$ID", id, "$TAG", tag, "$VERSION", version)
		for i := range e.headers {
			e.headers[i] = known.Replace(e.headers[i])
		}
		a := b.ask(token, e.method, known.Replace(e.path), e.body, e.headers...)
		if made, has := a.at("call_id").(string); has {
			call = made
		}
		if made, has := a.at("id").(string); has {
			id = made
		}
		if made := a.header.Get("ETag"); made != "" {
			tag = made
		}
		if is, read := a.at("version").(string); read && e.method == "GET" {
			version = is
		}
		if a.status != e.status {
			t.Errorf("docs/api.md:%d: it is answered %s", e.line, a)
		}
		for name, value := range e.answered {
			if got := a.header.Get(name); got != strings.NewReplacer("$CALL", call, "$TAG", tag).Replace(value) {
				t.Errorf("docs/api.md:%d: %s is %q", e.line, name, got)
			}
		}
		var want any
		if e.answer == "" && a.text == "" {
			continue
		}
		d := json.NewDecoder(strings.NewReader(e.answer))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Errorf("docs/api.md:%d: %v", e.line, err)
		} else if at := differs(want, a.body, ""); at != "" {
			t.Errorf("docs/api.md:%d: at %s it is answered %s", e.line, at, a)
		}
	}
}

// differs returns where two values differ; "..." is any value.
func differs(want, got any, at string) string {
	switch want := want.(type) {
	case string:
		if want == "..." && got != nil {
			return ""
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return at + "/"
		}
		for i := range want {
			if where := differs(want[i], list[i], fmt.Sprint(at, "/", i)); where != "" {
				return where
			}
		}
		return ""
	case map[string]any:
		object, _ := got.(map[string]any)
		for name := range object {
			if _, there := want[name]; !there {
				return at + "/" + name
			}
		}
		for name, value := range want {
			if where := differs(value, object[name], at+"/"+name); where != "" {
				return where
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return at + "/"
	}
	return ""
}
