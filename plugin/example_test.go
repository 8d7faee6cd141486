package plugin_test

import (
	"fmt"

	"github.com/mortise-dev/mortise/plugin"
)

// Whatever wraps an error of a plugin, its code is found.
func ExampleCodeOf() {
	err := fmt.Errorf("running the report: %w", plugin.Errorf(plugin.CodeTimeout, "no answer within %s", "30s"))
	fmt.Println(plugin.CodeOf(err))
	fmt.Println(plugin.CodeOf(nil) == "")
	// Output:
	// timeout
	// true
}

// Labels of two values that become one are those of both, each once.
func ExampleLabels() {
	fmt.Println(plugin.Labels([]string{plugin.Private}, []string{plugin.Untrusted, plugin.Private}))
	// Output: [private untrusted]
}

// An error keeps what it was made from, for the log alone.
func ExampleErrorf() {
	err := plugin.Errorf(plugin.CodeInvalidInput, "text is missing")
	fmt.Println(err.Code, err.Message)
	// Output: invalid_input text is missing
}
