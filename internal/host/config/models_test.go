package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestModelsAreCompleted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), FileName)
	text := `
models:
  light:
    - {provider: openai, model: tiny, base_url: "http://127.0.0.1:11434/v1"}
  heavy:
    - {name: big, provider: gemini, model: g-1, api_key_file: keys/gemini, documents: [application/pdf], uris: [gs], input_price: 1.5, output_price: 6}
  allow: [log.*]
  budget: {day: 2.5, session: 1}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	light, heavy := c.Models.Light[0], c.Models.Heavy[0]
	if light.Name != "tiny" || light.Context != 128000 || light.MaxInline != 24<<20 || light.InputPrice != nil {
		t.Errorf("light: %+v", light)
	}
	if heavy.Name != "big" || heavy.KeyFile != filepath.Join(filepath.Dir(path), "keys", "gemini") || *heavy.OutputPrice != 6 {
		t.Errorf("heavy: %+v", heavy)
	}
	if m := c.Models; len(m.Allow) != 1 || m.Allow[0] != "log.*" || m.Budget != (Budget{Day: 2.5, Session: 1}) || m.PerMinute != 120 || !m.Keep || m.Timeout != Duration(5*time.Minute) {
		t.Errorf("got %+v", m)
	}
	if none := Default().Models; len(none.Allow) != 1 || none.Budget.Day != 10 {
		t.Errorf("the defaults are %+v", none)
	}
}

func TestModelsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		`{provider: other, model: m}`:                                                                                 `the provider is "other"`,
		`{provider: openai, api_key_env: K, input_price: 1, output_price: 1}`:                                         `model is ""`,
		`{provider: openai, model: m, input_price: 1, output_price: 1}`:                                               "neither api_key_env nor api_key_file",
		`{provider: gemini, model: m, base_url: "https://x/v1", input_price: 1, output_price: 1}`:                     "neither api_key_env nor api_key_file",
		`{provider: openai, model: m, api_key_env: K, api_key_file: f, input_price: 1, output_price: 1}`:              "both api_key_env and api_key_file",
		`{provider: openai, model: m, api_key_env: K}`:                                                                "no input_price and output_price",
		`{provider: openai, model: m, api_key_env: K, input_price: -1, output_price: 1}`:                              "a price is -1",
		`{provider: openai, model: m, api_key_env: K, input_price: .nan, output_price: 1}`:                            "a price is NaN",
		`{provider: openai, model: m, base_url: "http://models.example.com/v1", api_key_env: K}`:                      "write https",
		`{provider: openai, model: m, base_url: "https://me:pw@models.example.com/v1"}`:                               "has a user in it",
		`{provider: openai, model: m, base_url: "file:///etc"}`:                                                       "no address",
		`{provider: openai, model: m, base_url: "https://x/v1", uris: [gs]}`:                                          "gemini fetches gs",
		`{provider: gemini, model: m, api_key_env: K, uris: [file], input_price: 1, output_price: 1}`:                 "gemini fetches gs",
		`{provider: openai, model: m, base_url: "https://x/v1", documents: [pdf]}`:                                    "no MIME type",
		`{provider: openai, model: m, base_url: "https://x/v1", context: -1}`:                                         "context is -1",
		`{provider: openai, model: m, base_url: "https://x/v1"}, {provider: openai, model: m, base_url: "https://y"}`: `another model "m"`,
	} {
		_, err := Parse([]byte("models: {light: [" + model + "]}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", model, err)
		}
	}
	for section, want := range map[string]string{
		"{allow: ['a*b']}": "models.allow", "{budget: {day: -1}}": "models.budget.day", "{budget: {call: .inf}}": "models.budget.call",
		"{per_minute: -1}": "models.per_minute", "{at_once: 0}": "models.at_once", "{timeout: 0s}": "models.timeout", "{light: [{api_key: x}]}": "api_key",
	} {
		if _, err := Parse([]byte("models: " + section)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", section, err)
		}
	}
}

// An API key in the file does not appear in messages about the file.
func TestAKeyInTheFileIsNotShown(t *testing.T) {
	t.Parallel()
	for _, model := range []string{
		"{provider: openai, model: m, api_key: sk-very-secret}",
		"{provider: openai, model: m, api_key_env: sk-very-secret, input_price: 1, output_price: 1}",
		"{provider: openai, model: m, apikey: \"sk-very-secret\"}",
	} {
		_, err := Parse([]byte("models: {light: [" + model + "]}"))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", model, err)
		}
	}
}
