package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// What is counted without decoding is what a decoder finds.
func TestAWeightIsWhatADecoderFinds(t *testing.T) { // alone, since it counts allocations
	r := rand.New(rand.NewPCG(1, 2))
	var make func(depth int) string
	make = func(depth int) string {
		switch n := r.IntN(7); {
		case n == 0 && depth > 0:
			var all []string
			for range r.IntN(90) {
				all = append(all, make(depth-1))
			}
			return " [" + strings.Join(all, " ,\n") + "] "
		case n == 1 && depth > 0:
			var all []string
			for i := range r.IntN(90) {
				all = append(all, fmt.Sprintf(`"%d\"}:," : %s`, i, make(depth-1)))
			}
			return "{" + strings.Join(all, ",") + "}"
		default:
			return []string{"1", "-1.5e3", "true", "null", `""`, `"a,b:[{\\"`, `"\""`}[r.IntN(7)]
		}
	}
	texts := 300
	if testing.Short() {
		texts = 60
	}
	for range texts {
		text := make(4)
		var want budget.Weight
		want.Bytes = len(text)
		dec := jsontext.NewDecoder(strings.NewReader(text))
		for {
			token, err := dec.ReadToken()
			if err != nil {
				break
			}
			switch token.Kind() {
			case '}', ']':
			case '{':
				want.Objects++
				want.Values++
			default:
				want.Values++
			}
			_ = token
		}
		got := budget.Weigh([]byte(text))
		if got.Values != want.Values || got.Objects != want.Objects || got.Bytes != want.Bytes {
			t.Fatalf("%s: %+v, want %+v", text, got, want)
		}
	}
	object := "{" + strings.TrimSuffix(strings.Repeat(`"k":1,`, 65), ",") + "}"
	if w := budget.Weigh([]byte("[" + object + `,{"a":1}]`)); w.Crowded != 65 {
		t.Errorf("%d members are in a crowd, want 65", w.Crowded)
	}
	for _, broken := range []string{"{", `"`, `"\`, "]}", strings.Repeat("[", 1000), strings.Repeat("}", 1000), strings.Repeat(`{"a":`, 1000)} {
		budget.Weigh([]byte(broken)) // and nothing else
	}
	if n := testing.AllocsPerRun(10, func() { budget.Weigh([]byte(object)) }); n > 0 {
		t.Errorf("weighing allocates %v times", n)
	}
}

func TestTheBudgetIsNeverExceededAndAllAreServed(t *testing.T) {
	t.Parallel()
	var used, most atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			weight := 100<<10 + r.IntN(budget.Capacity-100<<10)
			if err := budget.Do(weight, func() error {
				now := used.Add(int64(weight))
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				used.Add(-int64(weight))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() > budget.Capacity {
		t.Errorf("%d bytes were in use at a time", most.Load())
	}
	own := errors.New("own")
	if err := budget.Do(1<<20, func() error { return own }); err != own {
		t.Errorf("%v", err)
	}
	err := budget.Do(budget.Capacity+1, func() error { t.Error("it was done"); return nil })
	if !budget.Exceeded(err) {
		t.Errorf("%v", err)
	}
}
