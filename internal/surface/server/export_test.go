package server

import "time"

// Statuses are what each code is answered with.
var Statuses = statuses

// Counted returns how many channels are counted after n were asked for.
func Counted(n int) int {
	r := newRates(1, 1)
	for i := range n {
		r.take(string(rune(i)), time.Unix(0, 0))
	}
	return len(r.all)
}
