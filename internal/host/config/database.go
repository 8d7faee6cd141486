package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A Database is where a host keeps its state: nothing for SQLite in the data
// directory, or the URL of a PostgreSQL database. However it is printed, the
// password in it is not; [Database.URL] has it.
type Database string

// Check refuses what no store can be opened with, and does not repeat it.
func (d Database) Check() error {
	scheme, _, found := strings.Cut(string(d), "://")
	switch {
	case d == "", found && (scheme == "postgres" || scheme == "postgresql"):
		return nil
	case found && regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]{0,20}$`).MatchString(scheme):
		return fmt.Errorf("the database's scheme is %s; %s", scheme, accepted)
	default:
		return errors.New("the database is no URL; " + accepted)
	}
}

const accepted = "it is postgres:// or postgresql://, or empty for SQLite in the data directory"

// URL returns the whole of it.
func (d Database) URL() string { return string(d) }

// String returns it without the password.
func (d Database) String() string {
	if d == "" {
		return ""
	}
	u, err := url.Parse(string(d))
	if err != nil || d.Check() != nil {
		return "hidden" // whatever it is, there may be a password in it
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "hidden")
		}
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "password") {
			q.Set(name, "hidden")
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// GoString is for %#v.
func (d Database) GoString() string { return d.String() }

// LogValue is for package slog.
func (d Database) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalJSON writes it without the password.
func (d Database) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// MarshalYAML writes it without the password.
func (d Database) MarshalYAML() ([]byte, error) { return yaml.Marshal(d.String()) }

// keys matches lines of the file that may contain an API key.
var keys = pattern.New(`(?i)(api_?key\w*["']?\s*[:=]\s*)[^\s,}]+`)

var secrets = pattern.New(`(?i)((?:[a-z][a-z0-9+.-]*)://[^\s:/@]*:)\S*@|(password=)[^\s&"']*`)

// hide takes passwords and keys out of a text that may hold URLs, such as the lines of
// the file that an error shows.
func hide(text string) string {
	text = keys.ReplaceAllString(text, "${1}hidden")
	return secrets.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasSuffix(m, "@") {
			start := strings.Index(m, "://") + 3
			return m[:start+strings.Index(m[start:], ":")] + ":hidden@"
		}
		return m[:len("password=")] + "hidden"
	})
}
