package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// secretPrefix stands before the base64 of a secret (Standard Webhooks, "Symmetric").
const secretPrefix = "whsec_"

// maxSignatures is how many signatures of one delivery are looked at.
const maxSignatures = 8

// key returns the bytes of a secret: those that its base64 means where it is
// spelled as Standard Webhooks has it, and otherwise its own.
func key(secret string) ([]byte, error) {
	text, spelled := strings.CutPrefix(secret, secretPrefix)
	if !spelled {
		return []byte(secret), nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "a secret that begins with %s goes on with base64, and this one does not", secretPrefix)
	}
	return raw, nil
}

// Sign returns the headers that prove a delivery (Standard Webhooks 1.0).
func Sign(secret, id string, at time.Time, body []byte) (http.Header, error) {
	k, err := key(secret)
	if err != nil {
		return nil, err
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	header := http.Header{}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", stamp)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(new(work).mac(k, id, ".", stamp, ".", string(body))))
	return header, nil
}

// standard verifies a delivery of Standard Webhooks. Its header may carry several
// signatures, one for each secret that is in use.
func standard(w *work, header map[string]string, body []byte, secret string) (*Delivery, bool) {
	k, err := key(secret)
	if err != nil {
		return nil, false
	}
	id, stamp := header["Webhook-Id"], header["Webhook-Timestamp"]
	at, ok := seconds(stamp)
	if !ok {
		return nil, false
	}
	sum := base64.StdEncoding.EncodeToString(w.mac(k, id, ".", stamp, ".", string(body)))
	for i, signature := range strings.Split(header["Webhook-Signature"], " ") {
		if i == maxSignatures {
			break
		}
		if text, ok := strings.CutPrefix(signature, "v1,"); ok && hmac.Equal([]byte(text), []byte(sum)) {
			return &Delivery{ID: id, At: at}, true
		}
	}
	return nil, false
}

// seconds reads a time in seconds since 1970, spelled in the one way there is.
func seconds(text string) (time.Time, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 || strconv.FormatInt(n, 10) != text {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}
