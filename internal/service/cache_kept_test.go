package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// TestTheNextHostFindsWhatWasCached: a command line is a host of its own, and what
// a plugin caches outlives its call.
func TestTheNextHostFindsWhatWasCached(t *testing.T) {
	t.Parallel()
	tenant := t.Name()
	host := func() *scene {
		s := newScene(t)
		s.call.Tenant = tenant
		return s
	}
	ask := func(s *scene, method, args string) string {
		t.Helper()
		raw, err := s.services().Serve(t.Context(), method, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	expect := func(step string, s *scene, key, want string) {
		t.Helper()
		if got := ask(s, "cache.get", `{"key":"`+key+`"}`); got != want {
			t.Errorf("%s: %s is %s, want %s", step, key, got, want)
		}
	}
	const absent = `{"found":false}`
	kept := func(value string) string { return `{"found":true,"value":` + value + `}` }

	first := host()
	first.call.Labels = []string{"secret-source"}
	ask(first, "cache.set", `{"key":"a","value":{"n":1}}`)
	ask(first, "cache.set", `{"key":"b","value":2}`)
	ask(first, "cache.set", `{"key":"gone","value":3,"ttl_seconds":0}`)
	other := host() // which began before the first had ended
	expect("meanwhile", other, "a", absent)
	_ = first.broker.Close()

	second := host()
	services := second.services()
	if raw, err := services.Serve(t.Context(), "cache.get", json.RawMessage(`{"key":"a"}`)); err != nil || string(raw) != kept(`{"n":1}`) {
		t.Errorf("the next host: %s, %v", raw, err)
	}
	if got := fmt.Sprint(services.(interface{ Labels() []string }).Labels()); got != "[secret-source]" {
		t.Errorf("what it may have come from: %s", got)
	}
	expect("expired", second, "gone", absent)
	ask(second, "cache.set", `{"key":"a","value":"newer"}`)
	ask(second, "cache.delete", `{"key":"b"}`)
	ask(other, "cache.set", `{"key":"c","value":4}`)
	_ = second.broker.Close()
	_ = other.broker.Close() // it had not seen a and b, and takes neither back nor away

	third := host()
	expect("of two hosts", third, "a", kept(`"newer"`))
	expect("of two hosts", third, "b", absent)
	expect("of two hosts", third, "c", kept(`4`))
	stranger := host()
	stranger.target.Manifest.Name = "stranger"
	expect("another plugin", stranger, "a", absent)
	tenant = "elsewhere"
	expect("another tenant", host(), "a", absent)
	tenant = t.Name()

	// However many keys there were, the row has no more than the share of one plugin.
	big := strings.Repeat("x", 1<<20-100)
	for round := range 2 {
		s := host()
		for i := range 6 {
			ask(s, "cache.set", fmt.Sprintf(`{"key":"big-%d-%d","value":"%s"}`, round, i, big))
		}
		_ = s.broker.Close()
	}
	row, err := oneStore().KV(t.Context(), cachePlace(cacheOwner{tenant, "sample"}))
	if err != nil || row == nil || len(row.Value) > cacheShare+1<<20 {
		t.Fatalf("%v, %v", row != nil, err)
	}
	last := host()
	expect("the last", last, "big-1-5", kept(`"`+big+`"`))
	expect("the first", last, "big-0-0", absent)

	// More deletions than are remembered leave what is here.
	for i := range cacheDropped + 5 {
		key := fmt.Sprintf(`{"key":"k%d"`, i)
		ask(last, "cache.set", key+`,"value":1}`)
		ask(last, "cache.delete", key+`}`)
	}
	_ = last.broker.Close()
	expect("after many deletions", host(), "big-1-5", kept(`"`+big+`"`))
	expect("after many deletions", host(), "k7", absent)
}

// TestLabelsOfWhatHostsCacheTogetherOnlyGrow: whichever of two hosts that do not know
// of each other's value sets it last, or ends last, the next one reads it with the
// labels of both.
func TestLabelsOfWhatHostsCacheTogetherOnlyGrow(t *testing.T) {
	t.Parallel()
	sets := [][]string{nil, {"private"}, {"untrusted"}, {"private", "untrusted"}}
	for a, first := range sets {
		for b, second := range sets {
			for _, endsFirst := range []int{0, 1} {
				tenant := fmt.Sprint(t.Name(), a, b, endsFirst)
				hosts := []*scene{newScene(t), newScene(t)}
				for n, labels := range [][]string{first, second} {
					hosts[n].call.Tenant = tenant
					if _, err := hosts[n].services().Serve(t.Context(), "cache.get", json.RawMessage(`{"key":"k"}`)); err != nil { // nothing is there
						t.Fatal(err)
					}
					hosts[n].call.Labels = labels
					if _, err := hosts[n].services().Serve(t.Context(), "cache.set", json.RawMessage(fmt.Sprintf(`{"key":"k","value":%d}`, n))); err != nil {
						t.Fatal(err)
					}
				}
				_ = hosts[endsFirst].broker.Close()
				_ = hosts[1-endsFirst].broker.Close()
				next := newScene(t)
				next.call.Tenant = tenant
				services := next.services()
				raw, err := services.Serve(t.Context(), "cache.get", json.RawMessage(`{"key":"k"}`))
				if err != nil || string(raw) != `{"found":true,"value":1}` {
					t.Errorf("%v and %v: %s, %v", first, second, raw, err)
				}
				if got, want := fmt.Sprint(services.(*grant).Labels()), fmt.Sprint(plugin.Labels(first, second)); got != want {
					t.Errorf("%v and then %v, host %d ended first: it is read with %s, want %s", first, second, endsFirst, got, want)
				}
			}
		}
	}
}
