package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/mortise-dev/mortise/plugin"
)

// An answer is what is kept of how a call ended: the members of its result, its labels, and
// its error. Data is not among them here; see encodeAnswer.
type answer struct {
	plugin.Result
	Labels *[]string    `json:"labels,omitzero"` // in place of the result's; nil if they were not kept
	Error  *answerError `json:"error,omitempty"`
}

type answerError struct {
	Code         plugin.Code     `json:"code"`
	Message      string          `json:"message"`
	PluginCode   string          `json:"plugin_code,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`
	Retryable    bool            `json:"retryable,omitempty"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
}

// encodeAnswer returns the stored form of an outcome: the result as JSON, with the labels of
// all of it, and an error beside it where there is one. Data goes in byte for byte, because a
// repeated key promises the first answer and not one equal to it.
func encodeAnswer(res *plugin.Result, perr *plugin.Error, labels []string) ([]byte, error) {
	a := answer{Labels: &labels}
	if res != nil {
		a.Result = *res
	}
	a.SchemaVersion = plugin.SchemaVersion
	data := bytes.TrimSpace(a.Data)
	a.Data = nil
	if perr != nil {
		a.Error = &answerError{perr.Code, perr.Message, perr.PluginCode, perr.Details, perr.Retryable, perr.RetryAfter.Milliseconds()}
	}
	body, err := json2.Marshal(a, json2.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsonv1.OmitEmptyWithLegacySemantics(true))
	if err != nil || len(data) == 0 {
		return body, err
	}
	if !jsontext.Value(data).IsValid() {
		return nil, fmt.Errorf("the result's data is not one strict JSON value")
	}
	body = append(body[:len(body)-1], `,"data":`...) // schema_version is always before it
	body = append(body, data...)
	return append(body, '}'), nil
}

// decodeAnswer reads what encodeAnswer wrote, of any schema version there ever was. An error
// whose labels were not kept is untrusted. A result without labels has none, because those of
// results were always kept.
func decodeAnswer(body []byte) (res *plugin.Result, perr *plugin.Error, labels []string, err error) {
	var a answer
	if err := json2.Unmarshal(body, &a); err != nil {
		return nil, nil, nil, err
	}
	if a.SchemaVersion != plugin.SchemaVersion {
		return nil, nil, nil, fmt.Errorf("it has schema version %q and this binary knows %q", a.SchemaVersion, plugin.SchemaVersion)
	}
	switch {
	case a.Labels != nil:
		labels = *a.Labels
	case a.Error != nil:
		labels = unlabelled
	}
	if e := a.Error; e != nil {
		perr = &plugin.Error{
			Code: e.Code, Message: e.Message, PluginCode: e.PluginCode, Details: e.Details,
			Retryable: e.Retryable, RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond,
		}
	}
	if perr != nil && a.Status == "" {
		return nil, perr, labels, nil
	}
	return &a.Result, perr, labels, nil
}

// unlabelled are the labels of an answer whose labels are not known.
var unlabelled = []string{plugin.Untrusted}
