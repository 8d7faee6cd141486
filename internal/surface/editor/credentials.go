package editor

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Credentials in arguments and addresses cannot become secrets: the host gives a server those in
// variables and headers alone. What looks like one is refused, since the manifest would have it in
// clear, and other processes see arguments.

var (
	// assignment is a name that credentials have, and what is given to it: --api-key=x,
	// Authorization: Bearer x, {"apiKey": "x"}.
	assignment = pattern.New(`(?i)(key|token|secret|passw|pwd|auth|credential|cookie|bearer)[a-z_-]*["']?\s*[:=]\s*["']?(bearer |basic |token )?[^\s"']{8,}`)
	// fileName is a word that ends as files do, or that names a package and its version.
	fileName = pattern.New(`\.[A-Za-z][A-Za-z0-9]{0,9}$|@\d`)
)

// looksToken reports whether a word is long and dense enough to be a credential by itself.
func looksToken(word string) bool {
	return dense.MatchString(word) && digit.MatchString(word) && !strings.Contains(word, "/") && !fileName.MatchString(word)
}

// exposed returns where a command or an address holds what looks like a credential, "" for nowhere.
// It does not repeat the credential.
func (s Server) exposed() string {
	if s.URL != "" {
		if part := exposedIn(s.URL); part != "" {
			return "its url, in " + part
		}
		return ""
	}
	flag := "" // the word before, where it takes the next one as its value
	for i, word := range s.Command {
		name, value, assigned := strings.Cut(word, "=")
		switch part := exposedIn(word); {
		case i == 0:
			continue
		case part != "":
			return fmt.Sprintf("argument %d, an address, in %s", i, part)
		case flag != "" && !strings.HasPrefix(word, "-") && looksSecret(flag, word) && !strings.Contains(word, "/") && !fileName.MatchString(word):
			return fmt.Sprintf("argument %d, which %s takes", i, flag)
		case assigned && looksSecret(strings.TrimLeft(name, "-"), value) && !strings.Contains(value, "/") && !fileName.MatchString(value):
			return fmt.Sprintf("argument %d, %.40s=", i, name)
		case assignment.MatchString(word), looksToken(word):
			return fmt.Sprintf("argument %d", i)
		}
		if flag = ""; strings.HasPrefix(word, "-") && !assigned && sensitive.MatchString(word) {
			flag = word
		}
	}
	return ""
}

// exposedIn returns which part of an address looks like a credential, "" for none, or where the word
// is no address.
func exposedIn(word string) string {
	at := strings.Index(word, "://")
	if at < 0 || placeholder.MatchString(word) { // what has a placeholder is refused for that
		return ""
	}
	if from := strings.LastIndexAny(word[:at], "= \"'"); from >= 0 {
		word = word[from+1:]
	}
	u, err := url.Parse(word)
	if err != nil {
		return "an address that cannot be read"
	}
	if u.User != nil {
		return "the user or password before the host"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "its query, which cannot be read"
	}
	for name, values := range query {
		for _, value := range values {
			if looksSecret(name, value) {
				return fmt.Sprintf("the parameter %.40q", name)
			}
		}
	}
	for _, part := range append(strings.Split(u.Path, "/"), u.Fragment) {
		if looksToken(part) {
			return "its path"
		}
	}
	return ""
}
