package cli

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/input"
)

// TestAnExportIsARegularFile, or none that there is yet.
func TestAnExportIsARegularFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{dir, dir + "/", "/dev/null"} {
		if got, err := input.Exports(map[string]string{"output_path": path}); err == nil {
			t.Errorf("%s was taken: %v", path, got)
		}
	}
	if got, err := input.Exports(map[string]string{"output_path": dir + "/new"}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
