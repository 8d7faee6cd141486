package approval_test

import (
	"encoding/base64"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/approval"
)

// A token can be written on a command line as it is, and no two are alike. One
// in 64 would begin with "-", were it not drawn again.
func TestATokenIsNeverTakenForAnOption(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 4000 {
		asked := approval.New(approval.Question{Tenant: "t"})
		raw, err := base64.RawURLEncoding.DecodeString(asked.Token)
		if err != nil || len(raw) != 32 {
			t.Fatalf("the token is %q", asked.Token)
		}
		if asked.Token[0] == '-' {
			t.Fatalf("the token is %q, which a command line takes for an option", asked.Token)
		}
		if seen[asked.Token] {
			t.Fatal("two tokens are the same")
		}
		seen[asked.Token] = true
		if asked.Row.TokenHash != approval.HashToken(asked.Token) {
			t.Fatal("what is kept is not the hash of the token")
		}
	}
}
