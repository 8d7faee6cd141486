package signin

import (
	"strconv"
	"testing"
	"time"
)

// What waits for an answer counts once, in time and in its browser; there is room for so many.
func TestAFlowCountsOnceAndInTime(t *testing.T) {
	t.Parallel()
	f := newFlows()
	f.put("late", flow{expires: time.Now().Add(-time.Second)})
	f.put("one", flow{browser: hashOf("ann's"), expires: time.Now().Add(time.Minute)})
	for _, c := range []struct {
		state, browser string
		want           bool
	}{{"late", "", false}, {"one", "", false}, {"one", "ben's", false}, {"one", "ann's", true}, {"one", "ann's", false}, {"none", "ann's", false}} {
		if _, open := f.take(c.state, c.browser); open != c.want {
			t.Errorf("%+v: %v", c, open)
		}
	}
	for i := range maxFlows + 10 {
		f.put(strconv.Itoa(i), flow{expires: time.Now().Add(time.Minute + time.Duration(i)*time.Millisecond)})
	}
	if _, open := f.take("0", ""); open || len(f.open) > maxFlows {
		t.Errorf("there are %d, and the oldest is open: %v", len(f.open), open)
	}
	if _, open := f.take(strconv.Itoa(maxFlows+9), ""); !open {
		t.Error("the newest is gone")
	}
}
