//go:build !gcs

package blob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/blob"
)

func TestWithoutGCS(t *testing.T) {
	t.Parallel()
	if _, err := blob.Open(t.Context(), "gs://bucket", t.TempDir()); !strings.Contains(fmt.Sprint(err), "-tags gcs") {
		t.Errorf("gs:// without the tag ended with %v", err)
	}
}
