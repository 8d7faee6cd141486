package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// guesses are tokens of the right form with wrong secrets for an id.
func guesses(id string, n int) (all []string) {
	for i := range n {
		all = append(all, withChecksum("mrt_u"+id+"_"+fmt.Sprintf("%032d", i)))
	}
	return all
}

// Whose id is known cannot be guessed at from many addresses, and the holder goes on from
// theirs meanwhile; what an id that there is not is told is the same.
func TestSecretsOfOneIdAreNotGuessedAtFromManyAddresses(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	root := a.Host.As(plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}})
	made, secret, err := root.Tokens().Create(t.Context(), host.NewToken{Name: "laptop", For: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host.Authenticator().Token(t.Context(), secret, "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{made.ID, strings.Repeat("A", len(made.ID))} {
		auth, now := a.Host.Authenticator(), time.Now()
		auth.Now = func() time.Time { return now } // no bucket fills
		counts := map[plugin.Code]int{}
		for i, guess := range guesses(id, 300) {
			_, err := auth.Token(t.Context(), guess, fmt.Sprintf("198.51.100.%d", i%250))
			counts[plugin.CodeOf(err)]++
		}
		if counts[plugin.CodeUnauthenticated] != 100 || counts[plugin.CodeRateLimited] != 200 {
			t.Errorf("300 guesses at %s from many addresses are answered %v", id, counts)
		}
		if id != made.ID {
			continue
		}
		if _, err := auth.Token(t.Context(), secret, "198.51.100.251"); plugin.CodeOf(err) != plugin.CodeRateLimited {
			t.Errorf("from another address the right one is answered %v", err)
		}
		if c, err := auth.Token(t.Context(), secret, "192.0.2.7"); err != nil || c.Principal.ID != "ann" {
			t.Errorf("its holder is answered %v", err)
		}
	}
}

// How long the answer takes does not tell an id that there is from one that there is not.
// The same measure tells a token of the wrong form, which is refused before the database.
func TestTheTimeOfARefusalTellsNoId(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: the time of a refusal for an id that exists and for one that does not")
	}
	a := tokenHome(t, "")
	root := a.Host.As(plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}})
	made, _, err := root.Tokens().Create(t.Context(), host.NewToken{Name: "laptop", For: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	const each = 90 // below the burst of an id
	var apart, spread, control time.Duration
	for round := range 5 { // the machine may be at something else in one
		auth := a.Host.Authenticator()
		here, none := guesses(made.ID, each), guesses(fmt.Sprintf("B%09d", round), each)
		var took [3][]time.Duration
		for i := range each {
			for kind, token := range []string{here[i], none[i], here[i][:len(here[i])-1] + "!"} {
				begun := time.Now()
				if _, err := auth.Token(t.Context(), token, "192.0.2.1"); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
					t.Fatalf("it is answered %v", err)
				}
				took[kind] = append(took[kind], time.Since(begun))
			}
		}
		for kind := range took {
			slices.Sort(took[kind])
		}
		middle := func(kind int) time.Duration { return took[kind][each/2] }
		apart, control = (middle(0) - middle(1)).Abs(), (middle(1) - middle(2)).Abs()
		spread = max(took[0][each*3/4]-took[0][each/4], took[1][each*3/4]-took[1][each/4])
		if apart <= spread && control > spread {
			return
		}
	}
	t.Errorf("the medians are %s apart where half of the answers are within %s; a token of the wrong form is %s apart", apart, spread, control)
}
