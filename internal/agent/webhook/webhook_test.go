package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

// headers builds a header from pairs.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// The example that the specification and its libraries are tested with, and the
// one in GitHub's documentation.
func TestPublishedSignaturesHold(t *testing.T) {
	t.Parallel()
	body := []byte(`{"test": 2432232314}`)
	at := time.Unix(1614265330, 0)
	d, err := webhook.Standard.Verify(headers(
		"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
		"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	), body, []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, at)
	if err != nil || d.ID != "msg_p5jXN8AQM9LWM0D4loKWxJek" || !d.At.Equal(at) || !bytes.Equal(d.Body, body) {
		t.Errorf("standard: %+v, %v", d, err)
	}
	d, err = webhook.GitHub.Verify(headers(
		"X-GitHub-Delivery", "72d3162e", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	), []byte("Hello, World!"), []string{"It's a Secret to Everybody"}, at)
	if err != nil || d.ID != "72d3162e" {
		t.Errorf("github: %+v, %v", d, err)
	}
}

const secret = "whsec_c2VjcmV0IG9mIHRoaXMgdGVzdCwgMzIgYnl0ZXM="

var (
	now     = time.Unix(1790000000, 0)
	message = []byte(`{"event_id":"Ev1","update_id":42,"text":"hello"}`)
)

// good returns the headers of a delivery that is accepted, by each scheme.
func good(t testing.TB, s webhook.Scheme, at time.Time) http.Header {
	t.Helper()
	stamp := strconv.FormatInt(at.Unix(), 10)
	switch s {
	case webhook.Standard:
		h, err := webhook.Sign(secret, "msg_1", at, message)
		if err != nil {
			t.Fatal(err)
		}
		return h
	case webhook.Slack:
		return headers("X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+hex.EncodeToString(webhook.MAC([]byte(secret), "v0:"+stamp+":"+string(message))))
	case webhook.GitHub:
		return headers("X-GitHub-Delivery", "72d3162e", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(webhook.MAC([]byte(secret), string(message))))
	}
	return headers("X-Telegram-Bot-Api-Secret-Token", secret)
}

func TestEachSchemeAcceptsItsOwn(t *testing.T) {
	t.Parallel()
	ids := map[webhook.Scheme]string{webhook.Standard: "msg_1", webhook.Slack: "Ev1", webhook.GitHub: "72d3162e", webhook.Telegram: "42"}
	for _, s := range webhook.Schemes() {
		for _, secrets := range [][]string{{secret}, {"the next one", secret}, {secret, "the last one"}} {
			d, err := s.Verify(good(t, s, now), message, secrets, now.Add(webhook.Tolerance))
			if err != nil || d.ID != ids[s] {
				t.Errorf("%s: %+v, %v", s, d, err)
			}
		}
	}
}

// A forgery is a good delivery with one thing changed.
type forgery struct {
	what   string
	header http.Header
	body   []byte
}

// forgeries returns at least n forged deliveries of a scheme.
func forgeries(t testing.TB, s webhook.Scheme, n int) []forgery {
	random := rand.New(rand.NewPCG(7, uint64(len(s))))
	var all []forgery
	add := func(what string, h http.Header, body []byte) { all = append(all, forgery{what, h, body}) }
	base := good(t, s, now)
	names := make([]string, 0, len(base))
	for name := range base {
		names = append(names, name)
	}
	slices.Sort(names)
	signed := s != webhook.Telegram // only the sender's token counts there
	for _, name := range names {
		value := base.Get(name)
		if s == webhook.GitHub && name == "X-Github-Delivery" {
			h := base.Clone()
			h.Del(name)
			add("no "+name, h, message)
			continue
		}
		for _, other := range []string{"", value + "x", value + " ", " " + value, value[:len(value)-1], value[1:], strings.ToUpper(value) + "!", "v1", "v0=", "sha256=", "v1,", "\x00", strings.Repeat("A", 9000)} {
			if name == "Webhook-Signature" && strings.TrimSpace(other) == value {
				continue // a list of one, with a space
			}
			h := base.Clone()
			h.Set(name, other)
			add(fmt.Sprintf("%s is %.20q", name, other), h, message)
		}
		h := base.Clone()
		h.Del(name)
		add("no "+name, h, message)
		h = base.Clone()
		h.Add(name, value)
		add("twice "+name, h, message)
	}
	if signed {
		for _, body := range [][]byte{nil, message[:len(message)-1], append(slices.Clone(message), '\n'), []byte(`{"event_id":"Ev1", "update_id":42,"text":"hello"}`), []byte(strings.ToUpper(string(message)))} {
			add(fmt.Sprintf("body %.30q", body), base, body)
		}
	}
	if s == webhook.Standard || s == webhook.Slack {
		for _, at := range []time.Duration{-webhook.Tolerance - time.Second, webhook.Tolerance + time.Second, -24 * time.Hour, 24 * time.Hour, -now.Sub(time.Unix(1, 0))} {
			add("signed at "+at.String(), good(t, s, now.Add(at)), message)
		}
		for _, stamp := range []string{"0", "-1", "01790000000", "+1790000000", "1790000000.0", "1.79e9", "0x6ab1f180", "99999999999999999999", "now"} {
			h := base.Clone()
			h.Set(names[slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "Timestamp") })], stamp)
			add("time "+stamp, h, message)
		}
	}
	for len(all) < n { // any bit of the signature, and where it is signed of the body
		h, body := base.Clone(), slices.Clone(message)
		if signed && random.IntN(2) == 0 {
			i := random.IntN(len(body))
			body[i] ^= 1 << random.IntN(7)
			add(fmt.Sprintf("bit of byte %d", i), h, body)
			continue
		}
		for name := range h {
			if !strings.Contains(name, "Signature") && !strings.Contains(name, "Token") {
				continue
			}
			raw := []byte(h.Get(name))
			i := random.IntN(len(raw))
			was := raw[i]
			raw[i] ^= 1 << random.IntN(5)
			if was == raw[i] || sameBits(string(raw), h.Get(name)) {
				continue
			}
			h.Set(name, string(raw))
			add(fmt.Sprintf("bit of byte %d of the signature", i), h, body)
		}
	}
	return all
}

// sameBits reports whether two base64 texts mean the same bytes: the last digit
// of one carries bits that mean nothing.
func sameBits(a, b string) bool {
	x, err1 := base64.StdEncoding.DecodeString(strings.TrimPrefix(a, "v1,"))
	y, err2 := base64.StdEncoding.DecodeString(strings.TrimPrefix(b, "v1,"))
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func TestForgedDeliveriesAreRefused(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, s := range webhook.Schemes() {
		for _, f := range forgeries(t, s, 125) {
			tried++
			d, err := s.Verify(f.header, f.body, []string{secret}, now)
			if err == nil || d != nil || plugin.CodeOf(err) != plugin.CodeUnauthenticated {
				t.Errorf("%s, %s: %+v, %v", s, f.what, d, err)
			}
			if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("%s, %s: the error has the secret: %v", s, f.what, err)
			}
		}
		for _, secrets := range [][]string{nil, {""}, {"whsec_"}, {"whsec_%%%"}, {"another"}} {
			tried++
			if _, err := s.Verify(good(t, s, now), message, secrets, now); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
				t.Errorf("%s with the secrets %q: %v", s, secrets, err)
			}
		}
		for _, other := range webhook.Schemes() {
			if other != s {
				tried++
				if _, err := s.Verify(good(t, other, now), message, []string{secret}, now); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
					t.Errorf("a delivery of %s as one of %s: %v", other, s, err)
				}
			}
		}
	}
	t.Logf("%d forged deliveries", tried)
	if tried < 500 {
		t.Errorf("%d forged deliveries were tried", tried)
	}
}

func TestWhatCannotBeADelivery(t *testing.T) {
	t.Parallel()
	if _, err := webhook.Scheme("stripe").Verify(nil, nil, nil, now); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
	if _, err := webhook.GitHub.Verify(nil, make([]byte, webhook.MaxBody+1), []string{secret}, now); plugin.CodeOf(err) != plugin.CodeInputTooLarge {
		t.Error(err)
	}
	if _, err := webhook.Sign("whsec_not base64", "m", now, nil); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Error(err)
	}
}
