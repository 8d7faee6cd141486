package service

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/service/egress"
)

// An httpFailure is the normalised form of an answer of 400 and above, the same for
// every contract and language.
type httpFailure struct {
	Category     string  `json:"category"`
	Retryable    bool    `json:"retryable"`      // the same request may succeed later
	RetryAfterMS *int64  `json:"retry_after_ms"` // as the provider asks; null where it does not say
	Message      *string `json:"provider_message"`
	Code         *string `json:"provider_error_code"`
}

// categories are those that a status has to itself.
var categories = map[int]string{
	http.StatusUnauthorized: "auth_error", http.StatusForbidden: "forbidden", http.StatusNotFound: "not_found",
	http.StatusGone: "gone", http.StatusTooManyRequests: "rate_limited",
}

// Bounds of what a provider says.
const (
	maxAsked = 24 * time.Hour // that it asks to wait
	maxSaid  = 2 << 10        // bytes of its message, and of its code

	maxFailure = 64 << 10 // up to which size a body is looked at for them
)

// The members of a body that hold a message and a code, the likeliest first.
var (
	messageMembers = []string{"message", "error_description", "detail", "title", "error_message", "description"}
	codeMembers    = []string{"code", "status", "error_code", "errorCode", "reason", "type"}
)

// failureOf reads what a provider says of a failure.
func failureOf(status int, header http.Header, body []byte) *httpFailure {
	f := &httpFailure{Category: categories[status], Retryable: status == http.StatusTooManyRequests || status >= http.StatusInternalServerError}
	switch {
	case f.Category != "":
	case status >= http.StatusInternalServerError:
		f.Category = "server_error"
	default:
		f.Category = "client_error"
	}
	if asked, given := egress.RetryAfter(strings.TrimSpace(header.Get("Retry-After"))); given {
		ms := min(asked, maxAsked).Milliseconds()
		f.RetryAfterMS = &ms
	}
	if len(body) <= maxFailure && strings.Contains(strings.ToLower(header.Get("Content-Type")), "json") {
		f.Message, f.Code = firstText(body, messageMembers), firstText(body, codeMembers)
	}
	return f
}

// firstText returns the first of the named members that says something: of the
// body's error, of the first of its errors, or of itself. Words come before
// numbers, which mostly repeat the status.
func firstText(body []byte, names []string) *string {
	var top map[string]jsontext.Value
	if json2.Unmarshal(body, &top) != nil {
		return nil
	}
	var listed []jsontext.Value
	_ = json2.Unmarshal(top["errors"], &listed)
	places := []jsontext.Value{top["error"]}
	if len(listed) > 0 {
		places = append(places, listed[0])
	}
	for _, place := range append(places, body) {
		var members map[string]jsontext.Value
		if json2.Unmarshal(place, &members) != nil {
			continue
		}
		number := ""
		for _, name := range names {
			text, isNumber := said(members[name])
			if text != "" && !isNumber {
				return clipped(text)
			}
			if number == "" {
				number = text
			}
		}
		if number != "" {
			return clipped(number)
		}
	}
	if text, isNumber := said(top["error"]); text != "" && !isNumber { // {"error": "invalid_grant"}
		return clipped(text)
	}
	return nil
}

// said returns a text, or an integer as it is spelled.
func said(raw jsontext.Value) (text string, isNumber bool) {
	switch raw.Kind() {
	case '"':
		if json2.Unmarshal(raw, &text) != nil {
			return "", false
		}
		return text, text != "" && strings.Trim(text, "0123456789") == ""
	case '0':
		raw = bytes.TrimSpace(raw)
		if json.Valid(raw) && !bytes.ContainsAny(raw, ".eE") {
			return string(raw), true
		}
	}
	return "", false
}

func clipped(text string) *string {
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "")
	}
	return &text
}
