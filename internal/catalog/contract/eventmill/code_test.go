package eventmill_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/plugin"
)

// contractCodes are the error codes of the contract.
var contractCodes = []string{
	"INPUT_VALIDATION_FAILED", "ARTIFACT_NOT_FOUND", "ARTIFACT_UNREADABLE", "LLM_UNAVAILABLE", "LLM_CAPABILITY_GAP", "LLM_QUERY_FAILED", "TIMEOUT", "DEPENDENCY_MISSING", "INTERNAL_ERROR",
}

// TestEveryCodeHasASpellingOfTheContract walks the closed list of codes.
func TestEveryCodeHasASpellingOfTheContract(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../protocol/codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Code plugin.Code }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 40 {
		t.Fatalf("%d codes", len(list))
	}
	for _, c := range list {
		if got := eventmill.Code(plugin.Errorf(c.Code, "x")); !slices.Contains(contractCodes, got) {
			t.Errorf("%s is spelled %q", c.Code, got)
		}
	}
	if eventmill.Spellings() != len(list) {
		t.Errorf("%d spellings of %d codes", eventmill.Spellings(), len(list))
	}
	for code, want := range map[plugin.Code]string{
		plugin.CodeTimeout: "TIMEOUT", plugin.CodeInvalidInput: "INPUT_VALIDATION_FAILED", plugin.CodeDependencyMissing: "DEPENDENCY_MISSING",
		plugin.CodeNotFound: "ARTIFACT_NOT_FOUND", plugin.CodeCrashed: "INTERNAL_ERROR", plugin.CodePolicyDenied: "INTERNAL_ERROR",
	} {
		if got := eventmill.Code(plugin.Errorf(code, "x")); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
	if got := eventmill.Code(&plugin.Error{Code: plugin.CodePluginError, PluginCode: "NO_MITRE_MAPPINGS"}); got != "NO_MITRE_MAPPINGS" {
		t.Errorf("a plugin's own code became %s", got)
	}
	if got := eventmill.Code(fmt.Errorf("whatever")); got != "INTERNAL_ERROR" {
		t.Errorf("an unknown error is %s", got)
	}
}
