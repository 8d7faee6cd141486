package eventmill

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// models connects the host to a loopback server that answers as an
// OpenAI-compatible one does. The quota of one model may be used up; answer, if
// there is one, is what all of them say.
func (h *host) models(t *testing.T, spent string, answer ...string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct {
			Model string `json:"model"`
		}
		w.Header().Set("Content-Type", "application/json")
		switch err := json.Unmarshal(body, &asked); {
		case err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions"):
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"no such request","type":"invalid_request_error"}}`)
			return
		case asked.Model == "model-"+spent:
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
			return
		}
		text := "echo"
		if strings.Contains(string(body), "small question") {
			text = "echo: small question"
		}
		if len(answer) > 0 {
			text = answer[0]
		}
		fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, asked.Model, text)
	}))
	t.Cleanup(server.Close)
	h.configure(t, modelsOf(server.URL))
}

// modelsOf is a configuration with a model in each tier.
func modelsOf(url string) string {
	text := "models:\n"
	for _, name := range []string{"light", "heavy"} {
		text += fmt.Sprintf("  %s:\n    - {name: %s, provider: openai, model: model-%s, base_url: %s/v1, api_key_env: MODEL_KEY}\n", name, name, name, url)
	}
	return text
}
