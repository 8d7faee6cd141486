package egress_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/egress"
)

// A name that a server reads as another is refused like that one.
func TestNamesThatServersFoldAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range egress.RefusedHeaders() {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ReplaceAll(name, "-", "_"), strings.ToUpper(strings.ReplaceAll(name, "-", "."))} {
			if !egress.RefusedHeader(spelled) {
				t.Errorf("%s may be sent", spelled)
			}
		}
	}
	if egress.RefusedHeader("X_Request_Id") {
		t.Error("X_Request_Id is refused")
	}
}
