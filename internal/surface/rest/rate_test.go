package rest_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A token makes so many requests and no more, whatever they ask for and however they are
// answered; another token makes its own, and time gives requests back.
func TestATokenMakesSoManyRequests(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Rate: 1, Burst: 5})
	own := b.app.As(person("ann")).Sessions()
	session, err := own.Create(t.Context(), host.NewSession{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := own.AddArtifact(t.Context(), session.ID, strings.NewReader("ten"), host.NewArtifact{Name: "ten.txt", Type: "text"})
	if err != nil {
		t.Fatal(err)
	}
	things := "sessions/" + session.ID + "/artifacts/" + artifact.ID
	get := func(token, path string, headers ...string) answer {
		return b.ask(token, "GET", "/api/v1/"+path, "", headers...)
	}
	tag := b.is(get("mrt_ann", things), 200, "").header.Get("ETag")
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	began := time.Now()
	for n := range 40 {
		all.Go(func() {
			path := []string{"tokens", "openapi.json", "nothing", "calls", things}[n%5]
			a := get("mrt_ann", path, "If-None-Match", tag)
			if a.status == 429 {
				after, err := strconv.Atoi(a.header.Get("Retry-After"))
				if err != nil || after < 1 || after > 60 || a.at("code") != "rate_limited" {
					t.Errorf("it is refused with %s %v", a, a.header)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	all.Wait()
	most := 4 + int(time.Since(began).Seconds()) + 1
	if passed := 40 - statuses[429]; passed < 4 || passed > most {
		t.Errorf("of 40 requests at once %d passed, %v; at most %d", passed, statuses, most)
	}
	b.is(get("mrt_bobs", "tokens"), 200, "") // another's own
	testwait.Until(t, "time has given a request back", func() bool { return get("mrt_ann", "tokens").status == 200 })
	for range 10 { // a token that is none is counted by where it comes from, and not here
		b.is(get("mrt_unknown", "tokens"), 401, "unauthenticated")
	}
}
