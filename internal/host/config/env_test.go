package config

import (
	"strings"
	"testing"
)

func TestEnvOfPlugins(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte("env: {digest: {REGION: eu, _a1: \"\"}}\n"))
	if err != nil || c.Env["digest"]["REGION"] != "eu" {
		t.Errorf("%v, %v", c.Env, err)
	}
	for text, want := range map[string]string{
		"env: {\"a b\": {A: x}}":                                    `"a b" is no name of a plugin`,
		"env: {digest: {1A: x}}":                                    `"1A" is no name of a variable`,
		"env: {digest: {A-B: x}}":                                   `"A-B" is no name of a variable`,
		"env: {digest: {A: " + strings.Repeat("x", maxEnv+1) + "}}": "at most 4096 are kept",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
