package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Every route that takes conditions follows them: an answer that the caller has is not
// repeated, and what is not as they have seen it is not changed.
func TestEveryConditionIsFollowed(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	var doc document
	if err := json.Unmarshal(rest.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	read, changed := 0, 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			text := string(doc.Paths[path][method])
			method = strings.ToUpper(method)
			row := rows[method+" "+path]
			if row.path == "" {
				row.path = path
			}
			where, body := fill(row.path, things), fill(row.body, things)
			token, _, _ := strings.Cut(row.token("any", things), ":")
			switch {
			case strings.Contains(text, `"If-Match"`):
				changed++
				for _, stale := range []string{`"stale"`, `W/"stale"`, `"a", "b"`, `stale`} {
					b.is(b.ask(token, method, where, body, "If-Match", stale), 412, "conflict")
				}
			case strings.Contains(text, `"If-None-Match"`):
				read++
				whole := b.is(b.ask(token, method, where, ""), 200, "")
				tag := whole.header.Get("ETag")
				if len(tag) < 20 || !strings.HasPrefix(tag, `"`) {
					t.Errorf("%s has the ETag %s", where, tag)
				}
				for _, had := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
					if a := b.ask(token, method, where, "", "If-None-Match", had); a.status != 304 || a.text != "" || a.header.Get("ETag") != tag {
						t.Errorf("%s, of which the caller has %s, is answered %s %v", where, had, a, a.header)
					}
				}
				if a := b.ask(token, method, where, "", "If-None-Match", `"other"`); a.status != 200 || a.text != whole.text || a.header.Get("ETag") != tag {
					t.Errorf("%s is answered %s, and before %s", where, a, whole)
				}
			}
		}
	}
	if read != 5 || changed < 14 {
		t.Errorf("%d routes are read and %d changed under conditions", read, changed)
	}
	for name, path := range map[string]string{"agent": "/api/v1/agents/helper", "session": "/api/v1/sessions/" + things["unkept"], "feed": "/api/v1/feeds/" + things["unfed"]} {
		token := map[string]string{"agent": "mrt_root"}[name]
		if token == "" {
			token = "mrt_ann"
		}
		b.is(b.ask(token, "GET", path, ""), 200, "") // it is all there
	}
}

// Of many who change what they have all seen, one does. The others are told that it is
// another.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	for _, c := range []struct{ token, get, method, path, body string }{
		{"mrt_root", "/api/v1/agents/helper", "PATCH", "/api/v1/agents/helper", `{"prompt":"You are %d."}`},
		{"mrt_root", "/api/v1/agents/helper/assignments/desk", "PUT", "/api/v1/agents/helper/assignments/desk", `{"enabled":true,"versions":"<%d.0.0"}`},
		{"mrt_root", "/api/v1/plugins/solo", "POST", "/api/v1/plugins/solo:disable", ""},
		{"mrt_ann", "/api/v1/feeds/" + things["feed"], "POST", "/api/v1/feeds/" + things["feed"] + ":pause", ""},
		{"mrt_ann", "/api/v1/sessions/" + things["session"], "POST", "/api/v1/sessions/" + things["session"] + ":close", ""},
	} {
		tag := b.is(b.ask(c.token, "GET", c.get, ""), 200, "").header.Get("ETag")
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for i := range 8 {
			all.Go(func() {
				body := c.body
				if body != "" {
					body = fmt.Sprintf(body, i+5)
				}
				a := b.ask(c.token, c.method, c.path, body, "If-Match", tag)
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
			})
		}
		all.Wait()
		if statuses[200] != 1 || statuses[412] != 7 {
			t.Errorf("%s %s is answered %v", c.method, c.path, statuses)
		}
		if now := b.ask(c.token, "GET", c.get, "").header.Get("ETag"); now == tag {
			t.Errorf("%s %s has the same ETag when it was changed", c.method, c.path)
		}
	}
}

// What another changed after the caller looked, and before the change, is not changed: the
// two are compared where the change is made.
func TestWhatChangedMeanwhileIsNotChanged(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	root, ann := b.app.As(person("root")), b.app.As(person("ann"))
	for _, c := range []struct {
		token     string
		of        host.API
		thing     host.Thing
		meanwhile string // what another does
	}{
		{"mrt_root", root, host.Thing{Noun: host.AnAgent, ID: "helper"}, "/api/v1/agents/helper:start"},
		{"mrt_root", root, host.Thing{Noun: host.APlugin, ID: "solo"}, "/api/v1/plugins/solo:disable"},
		{"mrt_ann", ann, host.Thing{Noun: host.AFeed, ID: things["feed"]}, "/api/v1/feeds/" + things["feed"] + ":pause"},
		{"mrt_ann", ann, host.Thing{Noun: host.ASession, ID: things["session"]}, "/api/v1/sessions/" + things["session"] + ":close"},
	} {
		ctx, done, err := c.of.Expect(t.Context(), c.thing)
		if err != nil {
			t.Fatal(err)
		}
		b.is(b.ask(c.token, "POST", c.meanwhile, ""), 200, "")
		change := func() (err error) {
			switch c.thing.Noun {
			case host.AnAgent:
				_, err = c.of.Agents().Delete(ctx, c.thing.ID)
			case host.APlugin:
				_, err = c.of.Plugins().Delete(ctx, c.thing.ID)
			case host.AFeed:
				_, err = c.of.Feeds().Delete(ctx, c.thing.ID)
			default:
				_, err = c.of.Sessions().Delete(ctx, c.thing.ID)
			}
			return err
		}
		if err := change(); plugin.CodeOf(err) != plugin.CodeConflict {
			t.Errorf("%s that another changed: %v", c.thing.Noun, err)
		}
		if err := done(); err != nil && plugin.CodeOf(err) != plugin.CodeConflict {
			t.Error(err)
		}
		if err := change(); err != nil {
			t.Errorf("%s is not there any more, or cannot be deleted: %v", c.thing.Noun, err)
		}
	}
}

// Settings say who may talk to an agent: they are changed only as they were seen.
func TestSettingsNeedWhatWasSeen(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.things()
	const helper = "/api/v1/agents/helper"
	b.is(b.ask("mrt_root", "PATCH", helper, `{"settings":{"max_steps":3}}`), 428, "conflict")
	tag := b.ask("mrt_root", "GET", helper, "").header.Get("ETag")
	a := b.is(b.ask("mrt_root", "PATCH", helper, `{"settings":{"max_steps":3}}`, "If-Match", tag), 200, "")
	if fmt.Sprint(a.at("settings", "max_steps")) != "3" || a.header.Get("ETag") == tag || a.header.Get("ETag") != b.ask("mrt_root", "GET", helper, "").header.Get("ETag") {
		t.Errorf("it is answered %s %v", a, a.header)
	}
	b.is(b.ask("mrt_root", "PATCH", helper, `{"settings":{"max_steps":3}}`, "If-Match", "*"), 428, "conflict")
	tag = a.header.Get("ETag")
	b.is(b.ask("mrt_root", "PATCH", helper, `{"settings":{"max_steps":99}}`, "If-Match", tag), 422, "invalid_input")
	b.is(b.ask("mrt_root", "PATCH", helper, `{"settings":{"channels":{"mail":{"scheme":"none-such","secret":"s"}}}}`, "If-Match", tag), 422, "invalid_input")
	b.is(b.ask("mrt_root", "PUT", "/api/v1/agents/*/assignments/desk", `{"enabled":true}`), 404, "not_found")
}
