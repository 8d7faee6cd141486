package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// contractCodes are the error codes of the contract.
var contractCodes = []string{
	"INPUT_VALIDATION_FAILED", "ARTIFACT_NOT_FOUND", "ARTIFACT_UNREADABLE", "LLM_UNAVAILABLE", "LLM_CAPABILITY_GAP", "LLM_QUERY_FAILED", "TIMEOUT", "DEPENDENCY_MISSING", "INTERNAL_ERROR",
}

// TestEveryCodeHasASpellingOfTheContract walks the closed list of codes.
func TestEveryCodeHasASpellingOfTheContract(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../protocol/codes.json")
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
		if got := spelled(plugin.Errorf(c.Code, "x")); !slices.Contains(contractCodes, got) {
			t.Errorf("%s is spelled %q", c.Code, got)
		}
	}
	if len(spellings) != len(list) {
		t.Errorf("%d spellings of %d codes", len(spellings), len(list))
	}
	for code, want := range map[plugin.Code]string{
		plugin.CodeTimeout: "TIMEOUT", plugin.CodeInvalidInput: "INPUT_VALIDATION_FAILED", plugin.CodeDependencyMissing: "DEPENDENCY_MISSING",
		plugin.CodeNotFound: "ARTIFACT_NOT_FOUND", plugin.CodeCrashed: "INTERNAL_ERROR", plugin.CodePolicyDenied: "INTERNAL_ERROR",
	} {
		if got := spelled(plugin.Errorf(code, "x")); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
	if got := spelled(&plugin.Error{Code: plugin.CodePluginError, PluginCode: "NO_MITRE_MAPPINGS"}); got != "NO_MITRE_MAPPINGS" {
		t.Errorf("a plugin's own code became %s", got)
	}
	if got := spelled(fmt.Errorf("whatever")); got != "INTERNAL_ERROR" {
		t.Errorf("an unknown error is %s", got)
	}
}

func TestArgumentsAfterTheDashes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		object string
		want   string
	}{
		{nil, "", ""},
		{[]string{"--a", "1", "--b"}, "", "a=1 b!"},
		{[]string{"--b", "--a", "x y"}, "", "b! a=x y"},
		{[]string{"--a=1=2", "--n", "-5", "--empty", ""}, "", "a=1=2 n=-5 empty="},
		{[]string{`{"a":1}`}, `{"a":1}`, ""},
		{[]string{`{"a":1}`, "--b", "2"}, `{"a":1}`, "b=2"},
		{[]string{"--a", "1", "--a", "2"}, "", "a=1 a=2"}, // of which an investigation plugin gets the last
		{[]string{"--json", `{"a":1}`}, "", `json={"a":1}`},
	} {
		object, list, err := readArguments(test.args)
		got := ""
		for i, a := range list {
			if i > 0 {
				got += " "
			}
			if got += a.name; a.bare {
				got += "!"
			} else {
				got += "=" + a.text
			}
		}
		if err != nil || object != test.object || got != test.want {
			t.Errorf("%q: %q %q %v", test.args, object, got, err)
		}
	}
	for _, args := range [][]string{{"word"}, {"--"}, {"--=x"}, {"--a", "1", "2"}, {"-a"}, {`{}`, `{}`}, {"--a", "\xff"}, {"\xff"}, {""}} {
		if object, list, err := readArguments(args); !isUsage(err) {
			t.Errorf("%q: %q %v %v", args, object, list, err)
		}
	}
}
