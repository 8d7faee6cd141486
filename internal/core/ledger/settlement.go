package ledger

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// withSettlement adds to the body of an entry on whose word a call was settled.
func withSettlement(body []byte, f Resolution) ([]byte, error) {
	settlement, err := json.Marshal(struct {
		By       string         `json:"by"`
		Reason   string         `json:"reason"`
		Evidence jsontext.Value `json:"evidence,omitzero"`
	}{f.By, f.Reason, f.Evidence}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1:len(body)-1], `,"settlement":`...)
	return append(append(body, settlement...), '}'), nil
}
