package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json"
)

// slack verifies a delivery of Slack ("Verifying requests from Slack"): its time
// and its body are signed. Its id is the event's, in the body; what has none, a
// command, is told apart by its bytes.
func slack(w *work, header map[string]string, body []byte, secret string) (*Delivery, bool) {
	stamp := header["X-Slack-Request-Timestamp"]
	at, ok := seconds(stamp)
	if !ok || !signedBy(header["X-Slack-Signature"], "v0=", w.mac([]byte(secret), "v0:", stamp, ":", string(body))) {
		return nil, false
	}
	var said struct {
		EventID string `json:"event_id"`
	}
	if json.Unmarshal(body, &said) != nil || said.EventID == "" {
		said.EventID = (&Delivery{Body: body}).Hash()
	}
	return &Delivery{ID: said.EventID, At: at}, true
}

// github verifies a delivery of GitHub ("Validating webhook deliveries"). Only
// its body is signed, neither its id nor a time: that is why the same body under
// another id is no other delivery.
func github(w *work, header map[string]string, body []byte, secret string) (*Delivery, bool) {
	if !signedBy(header["X-Hub-Signature-256"], "sha256=", w.mac([]byte(secret), string(body))) {
		return nil, false
	}
	return &Delivery{ID: header["X-Github-Delivery"]}, true
}

// telegram verifies an update of Telegram's bot API (setWebhook, secret_token): the
// sender shows the secret itself, so an attacker who sees one request can forge others.
// Its id is in the body.
func telegram(_ *work, header map[string]string, body []byte, secret string) (*Delivery, bool) {
	said, own := sha256.Sum256([]byte(header["X-Telegram-Bot-Api-Secret-Token"])), sha256.Sum256([]byte(secret))
	if !hmac.Equal([]byte(hex.EncodeToString(said[:])), []byte(hex.EncodeToString(own[:]))) {
		return nil, false
	}
	var update struct {
		ID *int64 `json:"update_id"`
	}
	if json.Unmarshal(body, &update) != nil || update.ID == nil {
		return nil, false
	}
	return &Delivery{ID: strconv.FormatInt(*update.ID, 10)}, true
}
