package editor

import (
	"fmt"
	"strings"
	"testing"
)

// A credential in a configuration becomes a secret, or it is refused with the next step: wherever it
// stands, and whatever it looks like, it is in no manifest and in no message. --plain takes it.
func TestACredentialIsInNoManifest(t *testing.T) {
	t.Parallel()
	none := func(string) (string, bool) { return "", false }
	for _, value := range []string{
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "sk-proj-Ab3dEf6hIj9kLmNoPqRs", "xoxb-1234567890-abcdefghij", "AKIAIOSFODNN7EXAMPLE1", "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl1", "0123456789abcdef0123456789abcdef", "correcthorsebattery",
	} {
		for place, s := range map[string]Server{
			"a flag with =":            {Command: []string{"srv", "--api-key=" + value}},
			"a flag and a word":        {Command: []string{"srv", "-v", "--token", value, "x"}},
			"a word like a variable":   {Command: []string{"srv", "-e", "GITHUB_TOKEN=" + value}},
			"a header":                 {Command: []string{"srv", "--header", "Authorization: Bearer " + value}},
			"JSON":                     {Command: []string{"srv", `{"apiKey": "` + value + `"}`}},
			"a parameter of a word":    {Command: []string{"srv", "https://h.example.com/mcp?access_token=" + value}},
			"a password of a word":     {Command: []string{"srv", "--db=postgres://u:" + value + "@h/db"}},
			"a parameter":              {URL: "https://h.example.com/mcp?v=1&api_key=" + value},
			"a password":               {URL: "https://u:" + value + "@h.example.com/mcp"},
			"what npx runs":            {Command: []string{"npx", "-y", "@x/y@1.2.3", "--key", value}, Hosts: []string{"registry.example.com"}},
			"a variable":               {Command: []string{"srv"}, Env: map[string]string{"API_KEY": value}},
			"a header of the requests": {URL: "https://h.example.com/mcp", Headers: map[string]string{"X-Key": value}},
			"a path":                   {URL: "https://h.example.com/s/" + value + "/mcp"},
			"a word":                   {Command: []string{"srv", value}},
		} {
			if value == "correcthorsebattery" && (place == "a path" || place == "a word") {
				continue // nothing tells that from a name
			}
			s.Name = "one"
			m, err := s.Mount("one", none, false)
			switch {
			case err == nil && (strings.Contains(string(m.Manifest), value) || !strings.Contains(fmt.Sprint(m.Secrets), value)):
				t.Errorf("%s in %s is in the manifest, or is no secret", value, place)
			case err != nil && (strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "--plain") || !strings.Contains(err.Error(), "mortise mcp mount")):
				t.Errorf("%s in %s: %v", value, place, err)
			}
			if _, err := s.Mount("one", none, true); err != nil && place != "a password" {
				t.Errorf("%s in %s with --plain: %v", value, place, err)
			}
		}
	}
	for _, command := range [][]string{
		{"srv", "--root", "/srv/keys/2024-01-01-production", "--config=./config/production-2024.json"}, {"srv", "--key-file", "/etc/srv/key-2024.pem", "--auth=none"}, {"srv", "--max-tokens", "100000"},
		{"npx", "-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/srv/files"}, {"python3", "-m", "my_server_package.version2"}, {"srv", "https://api.example.com/v1?page=2&format=json2025"},
		{"srv", "dist/server-build-20240101/index.js"}, {"srv", "--author=someone", "--port=8080"},
	} {
		s := Server{Name: "one", Command: command, Hosts: []string{"registry.example.com"}}
		if _, err := s.Mount("one", none, false); err != nil {
			t.Errorf("%q is refused: %v", command, err)
		}
	}
}
