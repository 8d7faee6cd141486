package server

import (
	"strings"
	"testing"
)

// When the set is full, the address that holds the most loses the delivery that has been arriving
// for the longest, and deliveries that have arrived are not displaced.
func TestTheBusiestAddressIsDisplaced(t *testing.T) {
	t.Parallel()
	s := newSenders(4)
	stopped := ""
	enter := func(name, from string) *sender {
		t.Helper()
		one, err := s.enter(strings.NewReader(strings.Repeat("x", smallBody+10)), from, func() { stopped += name })
		if err != nil {
			t.Fatalf("%s is refused: %v", name, err)
		}
		return one
	}
	enter("a", "A")
	waits := enter("b", "B")
	if err := waits.arrive(); err != nil {
		t.Fatal(err)
	}
	late := enter("c", "B")
	enter("d", "B")
	enter("e", "E")
	if stopped != "c" {
		t.Errorf("%q is displaced, want c: the oldest of the busiest address whose body still arrives", stopped)
	}
	if _, err := late.Read(make([]byte, 1)); err != errNoRoom {
		t.Errorf("a displaced delivery reads on: %v", err)
	}
	if err := late.arrive(); err != errNoRoom {
		t.Errorf("a displaced delivery has arrived: %v", err)
	}
	enter("f", "F")
	enter("g", "G")
	if stopped != "cda" {
		t.Errorf("%q are displaced, want cda: each time the oldest of the busiest address", stopped)
	}
	waits.prove()
	enter("h", "H")
	if len(stopped) != 3 {
		t.Errorf("%q are displaced, want none while there is a place", stopped)
	}
}

// A set of deliveries that all have arrived takes no other.
func TestArrivedDeliveriesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	s := newSenders(2)
	for range 2 {
		one, err := s.enter(strings.NewReader(""), "A", func() { t.Error("a delivery that has arrived is displaced") })
		if err != nil {
			t.Fatal(err)
		}
		if err := one.arrive(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.enter(strings.NewReader(""), "B", nil); err != errBusy {
		t.Errorf("a third delivery is answered %v, want errBusy", err)
	}
}

// Bytes count beyond the first of each delivery, until it leaves or is displaced.
func TestBytesAreGivenBack(t *testing.T) {
	t.Parallel()
	s := newSenders(100)
	text := strings.Repeat("x", MaxBody)
	var all []*sender
	for range 40 {
		one, err := s.enter(strings.NewReader(text), "A", func() {})
		if err != nil {
			t.Fatal(err)
		}
		for buffer := make([]byte, MaxBody); err == nil && one.read < MaxBody; {
			_, err = one.Read(buffer)
		}
		all = append(all, one)
	}
	if s.bytes > maxBodies || s.bytes < maxBodies-MaxBody {
		t.Errorf("%d bytes are held, want nearly %d", s.bytes, maxBodies)
	}
	for _, one := range all {
		one.leave()
		one.leave()
	}
	if s.bytes != 0 || len(s.all) != 0 {
		t.Errorf("%d bytes and %d deliveries are held after all have left", s.bytes, len(s.all))
	}
}
