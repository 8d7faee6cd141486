package main

import (
	"strings"
	"testing"
)

func TestWhatIsWorseIsFound(t *testing.T) {
	kept, err := read("a/b BenchmarkX allocs 40\na/b BenchmarkX bytes 8000\na/b BenchmarkX of BenchmarkY ratio 1.2\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		value float64
		worse bool
	}{
		{"a/b BenchmarkX allocs", 47, false}, {"a/b BenchmarkX allocs", 48, true}, {"a/b BenchmarkX allocs", 12, false},
		{"a/b BenchmarkX bytes", 9264, false}, {"a/b BenchmarkX bytes", 9265, true},
		{"a/b BenchmarkX of BenchmarkY ratio", 1.7, false}, {"a/b BenchmarkX of BenchmarkY ratio", 1.9, true},
		{"a/b BenchmarkNew allocs", 0, true},
	} {
		err := hold([]figure{{c.name, c.value}}, kept)
		if (err != nil) != c.worse || err != nil && !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s %v: %v", c.name, c.value, err)
		}
	}
	if _, err := read("no figure"); err == nil {
		t.Error("a line without a figure was read")
	}
}
