package server

import "time"

// Counted returns how many channels are counted after n were asked for.
func Counted(n int) int {
	s := New(Options{}).(*server)
	for i := range n {
		s.rates.Take(string(rune(i)), 1, time.Unix(0, 0))
	}
	return s.rates.Len()
}
