package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/plugin"
)

// granted returns the services of one call of a plugin that asks for them.
func granted(b *service.Broker, tenant, name string, capabilities ...string) plugin.Services {
	op := &plugin.Operation{Name: "op", Kind: plugin.Tool, Timeout: time.Minute}
	m := &plugin.Manifest{Name: name, Version: "1.0.0", Capabilities: capabilities, Operations: []*plugin.Operation{op}}
	return b.For(&plugin.Target{Manifest: m, Operation: op}, &plugin.Call{ID: "c", Tenant: tenant, Principal: plugin.Principal{Type: "user", ID: "u"}}, nil)
}

// ask is one request; the answer is JSON, or the code of the error.
func ask(t *testing.T, s plugin.Services, method, args string) string {
	t.Helper()
	raw, err := s.Serve(t.Context(), method, json.RawMessage(args))
	if err != nil {
		return string(plugin.CodeOf(err))
	}
	return string(raw)
}

const absent = `{"found":false}`

func TestCacheKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	s := granted(service.New(), "t", "p", "cache")
	for _, step := range [][3]string{
		{"cache.get", `{"key":"a"}`, absent},
		{"cache.set", `{"key":"a","value":{"n":1}}`, `{}`},
		{"cache.get", `{"key":"a"}`, `{"found":true,"value":{"n":1}}`},
		{"cache.set", `{"key":"a","value":null}`, `{}`},
		{"cache.get", `{"key":"a"}`, `{"found":true,"value":null}`},
		{"cache.delete", `{"key":"a"}`, `{}`},
		{"cache.delete", `{"key":"a"}`, `{}`},
		{"cache.get", `{"key":"a"}`, absent},
	} {
		if got := ask(t, s, step[0], step[1]); got != step[2] {
			t.Errorf("%s %s: %s, want %s", step[0], step[1], got, step[2])
		}
	}
}

func TestCacheIsApartForTenantsAndPlugins(t *testing.T) {
	t.Parallel()
	b := service.New()
	ask(t, granted(b, "t1", "p1", "cache"), "cache.set", `{"key":"a","value":1}`)
	for _, other := range [][2]string{{"t2", "p1"}, {"t1", "p2"}, {"t1p", "1"}} {
		s := granted(b, other[0], other[1], "cache")
		if got := ask(t, s, "cache.get", `{"key":"a"}`); got != absent {
			t.Errorf("%s sees %s", other, got)
		}
		ask(t, s, "cache.delete", `{"key":"a"}`)
	}
	if got := ask(t, granted(b, "t1", "p1", "cache"), "cache.get", `{"key":"a"}`); got != `{"found":true,"value":1}` {
		t.Errorf("the owner sees %s", got)
	}
}

func TestCacheForgetsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := granted(service.New(), "t", "p", "cache")
		ask(t, s, "cache.set", `{"key":"default","value":1}`)
		ask(t, s, "cache.set", `{"key":"short","value":1,"ttl_seconds":1.5}`)
		ask(t, s, "cache.set", `{"key":"none","value":1,"ttl_seconds":0}`)
		ask(t, s, "cache.set", `{"key":"negative","value":1,"ttl_seconds":-1}`)
		ask(t, s, "cache.set", `{"key":"year","value":1,"ttl_seconds":31536000}`)
		ask(t, s, "cache.set", `{"key":"huge","value":1,"ttl_seconds":1e300}`)
		has := func(want string) {
			t.Helper()
			var got []string
			for _, key := range strings.Fields("default short none negative year huge") {
				if ask(t, s, "cache.get", fmt.Sprintf(`{"key":%q}`, key)) != absent {
					got = append(got, key)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("it has %s, want %s", got, want)
			}
		}
		pass := func(d time.Duration) { time.Sleep(d) } // moves the clock of the bubble, and takes no time
		pass(time.Second)
		has("default short year huge")
		pass(time.Second)
		has("default year huge")
		pass(5 * time.Minute)
		has("year huge") // for a day at most
		pass(24 * time.Hour)
		has("")
	})
}

// One plugin keeps 8 MiB, and all of them together 16.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	b := service.New()
	value := `"` + strings.Repeat("x", 1<<20-2) + `"`
	fill := func(name string) plugin.Services {
		s := granted(b, "t", name, "cache")
		for n := range 16 {
			if n >= 5 { // the first is used again and again, so it stays
				ask(t, s, "cache.get", `{"key":"k0"}`)
			}
			if got := ask(t, s, "cache.set", fmt.Sprintf(`{"key":"k%d","value":%s}`, n, value)); got != "{}" {
				t.Fatal(got)
			}
		}
		return s
	}
	kept := func(s plugin.Services) (n int) {
		for i := range 16 {
			if ask(t, s, "cache.get", fmt.Sprintf(`{"key":"k%d"}`, i)) != absent {
				n++
			} else if i == 0 || i == 15 {
				t.Errorf("k%d is gone", i)
			}
		}
		return n
	}
	first := fill("p0")
	if n := kept(first); n < 6 || n > 8 {
		t.Errorf("%d of 1 MiB are kept for one plugin", n)
	}
	var last plugin.Services
	for i := range 5 {
		last = fill(fmt.Sprintf("p%d", i+1))
	}
	if n := kept(last); n < 6 || n > 8 {
		t.Errorf("%d of 1 MiB are kept for the last plugin", n)
	}
	if got := ask(t, first, "cache.get", `{"key":"k0"}`); got != absent {
		t.Error("what was used least recently is there when 40 MiB came after it")
	}
}

// Entries without much in them are counted with what they take themselves.
func TestCacheCountsSmallEntries(t *testing.T) {
	t.Parallel()
	s := granted(service.New(), "t", "p", "cache")
	const many = 100_000
	for n := range many {
		ask(t, s, "cache.set", fmt.Sprintf(`{"key":"%d","value":1}`, n))
	}
	if got := ask(t, s, "cache.get", `{"key":"0"}`); got != absent {
		t.Errorf("%d entries are kept for one plugin", many)
	}
	if got := ask(t, s, "cache.get", fmt.Sprintf(`{"key":"%d"}`, many-1)); got == absent {
		t.Error("the last is gone")
	}
}

func TestCacheRefusesWhatItCannotMean(t *testing.T) {
	t.Parallel()
	s := granted(service.New(), "t", "p", "cache")
	long := strings.Repeat("k", 513)
	for _, c := range [][3]string{
		{"cache.get", `{}`, "invalid_input"},
		{"cache.get", `{"key":""}`, "invalid_input"},
		{"cache.get", `{"key":1}`, "invalid_input"},
		{"cache.get", `{"key":"a","ky":"b"}`, "invalid_input"},
		{"cache.get", `{"key":"` + long + `"}`, "invalid_input"},
		{"cache.get", `{"key":"` + long[1:] + `"}`, absent},
		{"cache.get", `[]`, "invalid_input"},
		{"cache.set", `{"key":"a"}`, "invalid_input"},
		{"cache.set", `{"key":"a","value":1,"ttl_seconds":"soon"}`, "invalid_input"},
		{"cache.set", `{"key":"a","value":"` + strings.Repeat("x", 1<<20) + `"}`, "input_too_large"},
		{"cache.delete", `{"key":""}`, "invalid_input"},
		{"cache.flush", `{}`, "not_found"},
		{"cache", `{}`, "not_found"},
		{"secrets.get", `{"key":"a"}`, "service_denied"},
		{"", `{}`, "service_denied"},
	} {
		if got := ask(t, s, c[0], c[1]); got != c[2] {
			t.Errorf("%s %.60s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if got := ask(t, granted(service.New(), "t", "p"), "cache.get", `{"key":"a"}`); got != "service_denied" {
		t.Errorf("without the grant: %s", got)
	}
}

func TestCacheServesManyAtOnce(t *testing.T) {
	t.Parallel()
	b := service.New()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			s := granted(b, "t", "p", "cache")
			for i := range 200 {
				key := fmt.Sprintf(`{"key":"k%d","value":%d}`, i%10, n)
				if _, err := s.Serve(context.Background(), "cache.set", json.RawMessage(key)); err != nil {
					t.Error(err)
				}
				if _, err := s.Serve(context.Background(), "cache.get", json.RawMessage(`{"key":"k1"}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
