package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	slackSaid   = `{"type":"event_callback","event_id":"Ev1","event":{"type":"message","text":"hi","user":"U1","channel":"C1","ts":"1.2","thread_ts":"1.1"}}`
	githubSaid  = `{"action":"created","comment":{"body":"look","html_url":"https://x/1"},"issue":{"number":7,"title":"T"},"repository":{"full_name":"o/r"},"sender":{"login":"ann","type":"User"}}`
	githubOpen  = `{"action":"opened","issue":{"number":7,"title":"T","body":"B","html_url":"https://x/7"},"repository":{"full_name":"o/r"},"sender":{"login":"ann","type":"User"}}`
	githubPull  = `{"action":"opened","pull_request":{"number":8,"title":"P","body":null,"html_url":"https://x/8"},"sender":{"login":"ann","type":"User"}}`
	telegramOne = `{"update_id":1,"message":{"message_id":5,"text":"hi","from":{"id":42,"is_bot":false},"chat":{"id":-7}}}`
)

// What deliveries say, by scheme.
func TestReadDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheme webhook.Scheme
		kind   string
		body   string
		want   string // as JSON; "" where the delivery has no message
		code   plugin.Code
	}{
		"standard":                     {webhook.Standard, "", `{"text":"hi","sender":"U1","metadata":{"a":"","b":1}}`, `{"text":"hi","sender":"U1","metadata":{"a":"","b":1},"channel":""}`, ""},
		"standard, metadata is null":   {webhook.Standard, "", `{"text":"hi","metadata":null}`, `{"text":"hi","sender":"","channel":""}`, ""},
		"standard, metadata is a list": {webhook.Standard, "", `{"text":"hi","metadata":[1]}`, "", plugin.CodeInvalidInput},
		"standard, metadata is text":   {webhook.Standard, "", `{"text":"hi","metadata":"a"}`, "", plugin.CodeInvalidInput},
		"standard, no sender":          {webhook.Standard, "", `{"text":"hi"}`, `{"text":"hi","sender":"","channel":""}`, ""},
		"standard, nothing":            {webhook.Standard, "", `{"text":" \n"}`, "", ""},
		"standard without text":        {webhook.Standard, "", `{"sender":"U1"}`, "", plugin.CodeInvalidInput},
		"standard, a number":           {webhook.Standard, "", `{"text":1}`, "", plugin.CodeInvalidInput},
		"standard, cut short":          {webhook.Standard, "", `{"text":"hi"`, "", plugin.CodeInvalidInput},
		"standard, a list":             {webhook.Standard, "", `[]`, "", plugin.CodeInvalidInput},
		"standard, too long":           {webhook.Standard, "", `{"text":"` + strings.Repeat("x", MaxText+1) + `"}`, "", plugin.CodeInputTooLarge},
		"standard, NUL":                {webhook.Standard, "", `{"text":"a\u0000b"}`, "", plugin.CodeInputTooLarge},
		"standard, long sender":        {webhook.Standard, "", `{"text":"hi","sender":"` + strings.Repeat("x", 256) + `"}`, "", plugin.CodeInvalidInput},
		"standard, odd sender":         {webhook.Standard, "", `{"text":"hi","sender":"a\u0000b"}`, "", plugin.CodeInvalidInput},
		"standard, a room":             {webhook.Standard, "", `{"text":"hi","sender":"U1","room":"R 1"}`, `{"text":"hi","sender":"U1","room":"R 1","channel":""}`, ""},
		"standard, long room":          {webhook.Standard, "", `{"text":"hi","room":"` + strings.Repeat("x", 501) + `"}`, "", plugin.CodeInvalidInput},
		"standard, odd room":           {webhook.Standard, "", `{"text":"hi","room":"a\nb"}`, "", plugin.CodeInvalidInput},

		"slack":              {webhook.Slack, "", slackSaid, `{"text":"hi","sender":"U1","room":"C1/1.1","metadata":{"channel":"C1","thread_ts":"1.1","ts":"1.2"},"channel":""}`, ""},
		"slack, a mention":   {webhook.Slack, "", strings.Replace(slackSaid, `"message"`, `"app_mention"`, 1), `{"text":"hi","sender":"U1","room":"C1/1.1","metadata":{"channel":"C1","thread_ts":"1.1","ts":"1.2"},"channel":""}`, ""},
		"slack, no thread":   {webhook.Slack, "", strings.Replace(slackSaid, `"1.1"`, `""`, 1), `{"text":"hi","sender":"U1","room":"C1","metadata":{"channel":"C1","ts":"1.2"},"channel":""}`, ""},
		"slack, a bot":       {webhook.Slack, "", strings.Replace(slackSaid, `"user"`, `"bot_id":"B1","user"`, 1), "", ""},
		"slack, an edit":     {webhook.Slack, "", strings.Replace(slackSaid, `"user"`, `"subtype":"message_changed","user"`, 1), "", ""},
		"slack, a reaction":  {webhook.Slack, "", strings.Replace(slackSaid, `"message"`, `"reaction_added"`, 1), "", ""},
		"slack, set up":      {webhook.Slack, "", `{"type":"url_verification","challenge":"c1"}`, `{"text":"","sender":"","channel":""}`, ""},
		"slack, cut short":   {webhook.Slack, "", slackSaid[:40], "", plugin.CodeInvalidInput},
		"slack, odd members": {webhook.Slack, "", `{"event":"message"}`, "", plugin.CodeInvalidInput},

		"github, a comment":      {webhook.GitHub, "issue_comment", githubSaid, `{"text":"look","sender":"ann","room":"o/r#7","metadata":{"event":"issue_comment","number":7,"repository":"o/r","url":"https://x/1"},"channel":""}`, ""},
		"github, an issue":       {webhook.GitHub, "issues", githubOpen, `{"text":"T\n\nB","sender":"ann","room":"o/r#7","metadata":{"event":"issues","number":7,"repository":"o/r","url":"https://x/7"},"channel":""}`, ""},
		"github, a pull request": {webhook.GitHub, "pull_request", githubPull, `{"text":"P","sender":"ann","room":"#8","metadata":{"event":"pull_request","number":8,"url":"https://x/8"},"channel":""}`, ""},
		"github, a bot":          {webhook.GitHub, "issues", strings.Replace(githubOpen, `"User"`, `"Bot"`, 1), "", ""},
		"github, an edit":        {webhook.GitHub, "issue_comment", strings.Replace(githubSaid, "created", "edited", 1), "", ""},
		"github, a push":         {webhook.GitHub, "push", `{"ref":"refs/heads/main","sender":{"login":"ann","type":"User"}}`, "", ""},
		"github, a ping":         {webhook.GitHub, "ping", `{"zen":"x"}`, "", ""},
		"github, cut short":      {webhook.GitHub, "issues", githubOpen[:50], "", plugin.CodeInvalidInput},

		"telegram":            {webhook.Telegram, "", telegramOne, `{"text":"hi","sender":"42","room":"-7","metadata":{"chat_id":-7,"message_id":5},"channel":""}`, ""},
		"telegram, a topic":   {webhook.Telegram, "", strings.Replace(telegramOne, `"text"`, `"message_thread_id":9,"is_topic_message":true,"text"`, 1), `{"text":"hi","sender":"42","room":"-7/9","metadata":{"chat_id":-7,"message_id":5},"channel":""}`, ""},
		"telegram, a reply":   {webhook.Telegram, "", strings.Replace(telegramOne, `"text"`, `"message_thread_id":9,"text"`, 1), `{"text":"hi","sender":"42","room":"-7","metadata":{"chat_id":-7,"message_id":5},"channel":""}`, ""},
		"telegram, a bot":     {webhook.Telegram, "", strings.Replace(telegramOne, "false", "true", 1), "", ""},
		"telegram, a picture": {webhook.Telegram, "", `{"update_id":1,"message":{"message_id":5,"photo":[]}}`, "", ""},
		"telegram, an edit":   {webhook.Telegram, "", `{"update_id":1,"edited_message":{"text":"hi"}}`, "", ""},
		"telegram, text ids":  {webhook.Telegram, "", `{"update_id":1,"message":{"message_id":"5"}}`, "", plugin.CodeInvalidInput},
	} {
		in, err := read(c.scheme, &webhook.Delivery{Body: []byte(c.body)}, c.kind)
		got := ""
		if in != nil {
			raw, _ := json.Marshal(in)
			got = string(raw)
		}
		if plugin.CodeOf(err) != c.code || got != c.want {
			t.Errorf("%s: %s, %v\nwant %s %s", name, got, err, c.want, c.code)
		}
	}
}

// Metadata comes out as the sender spelled it, at any depth: ids above 2^53,
// fractions of any length, empty texts, lists, objects and nulls.
// A member whose name is spelt in other letters says nothing, beside the right one and
// without it, wherever it stands.
func TestOnlyTheExactNamesOfMembersCount(t *testing.T) {
	t.Parallel()
	fold := strings.NewReplacer("s", "\u017f", "k", "\u212a") // which a comparison without letter case takes for s and k
	tried := 0
	for _, c := range []struct {
		scheme     webhook.Scheme
		kind, body string
	}{
		{webhook.Standard, "", `{"text":"hi","sender":"u1","room":"r1","metadata":{"n":1}}`},
		{webhook.Slack, "", slackSaid}, {webhook.GitHub, "issue_comment", githubSaid}, {webhook.GitHub, "issues", githubOpen}, {webhook.Telegram, "", telegramOne},
	} {
		said := func(body string) string {
			in, err := read(c.scheme, &webhook.Delivery{Body: []byte(body)}, c.kind)
			if err != nil {
				return "an error"
			}
			raw, _ := json.Marshal(in)
			return string(raw)
		}
		right := said(c.body)
		for _, m := range regexp.MustCompile(`([{,])"([a-z_]+)":("[^"]*"|-?[0-9.]+|\{|true|false|null)`).FindAllStringSubmatchIndex(c.body, -1) {
			name, value := c.body[m[4]:m[5]], c.body[m[6]:m[7]]
			other := map[byte]string{'"': `"other"`, '{': `{}`, 't': "false", 'f': "true", 'n': `"x"`}[value[0]]
			if other == "" {
				other = "99"
			}
			for _, spelt := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], fold.Replace(name)} {
				if spelt == name {
					continue
				}
				tried++
				beside := fmt.Sprintf(`%s%q:%s,%s`, c.body[:m[4]-1], spelt, other, c.body[m[4]-1:])
				if got := said(beside); got != right {
					t.Errorf("%s with %q: %s, not %s", c.scheme, spelt, got, right)
				}
				if after := strings.TrimSuffix(c.body, "}") + fmt.Sprintf(`,%q:%s}`, spelt, other); m[2] == 0 && said(after) != right {
					t.Errorf("%s with %q at its end: %s, not %s", c.scheme, spelt, said(after), right)
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("%d spellings were tried", tried)
	}
}

func TestMetadataIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) string
	value = func(depth int) string {
		leaves := []string{`""`, `null`, `false`, `"9007199254740993"`, `9007199254740993`, `-9223372036854775808`, `18446744073709551615`, `123456789012345678901234567890`,
			`0.1000000000000000055511151231257827`, `1e2`, `1.0`, `-0`, `"<&>"`, `" "`}
		if n := r.IntN(len(leaves) + 4); depth == 0 || n < len(leaves) {
			return leaves[n%len(leaves)]
		}
		var parts []string
		list := r.IntN(2) == 0
		for i := range r.IntN(4) {
			if list {
				parts = append(parts, value(depth-1))
			} else {
				parts = append(parts, fmt.Sprintf(`"k%d":%s`, i, value(depth-1)))
			}
		}
		if list {
			return "[" + strings.Join(parts, ",") + "]"
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for range 300 {
		said := fmt.Sprintf(`{"id":9007199254740993,"empty":"","z":%s,"a":%s}`, value(3), value(3))
		in, err := read(webhook.Standard, &webhook.Delivery{Body: []byte(`{"metadata": ` + strings.ReplaceAll(said, ",", " ,\n") + `,"text":"hi"}`)}, "")
		if err != nil || string(in.Metadata) != said {
			t.Fatalf("sent %s\ngot  %s, %v", said, in.Metadata, err)
		}
	}
}

// One message of Slack that comes as two events is one message.
func TestMarksOfSlack(t *testing.T) {
	t.Parallel()
	in, err := readSlack([]byte(slackSaid), "")
	if err != nil || in.mark != "C1/1.2" {
		t.Errorf("%+v, %v", in, err)
	}
}

func FuzzRead(f *testing.F) {
	schemes := webhook.Schemes()
	for n, body := range []string{githubSaid, slackSaid, `{"text":"hi","sender":"x","metadata":{"a":[1]}}`, telegramOne, githubOpen, githubPull, `{"type":"url_verification","challenge":"x"}`, "", "null", "[", `{"text":"\ud800"}`} {
		f.Add(uint8(n), []byte(body))
	}
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		in, err := read(schemes[int(n)%len(schemes)], &webhook.Delivery{Body: body}, "issues")
		if err != nil {
			if code := plugin.CodeOf(err); in != nil || code != plugin.CodeInvalidInput && code != plugin.CodeInputTooLarge {
				t.Fatalf("%+v, %v", in, err)
			}
			return
		}
		if in == nil || in.Challenge != "" {
			return
		}
		if strings.TrimSpace(in.Text) == "" || len(in.Text) > MaxText || strings.ContainsRune(in.Text, 0) || len(in.Sender) > 255 || strings.ContainsFunc(in.Sender, unicode.IsControl) {
			t.Fatalf("taken: %+v", in)
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var again Incoming
		if err := json.Unmarshal(raw, &again); err != nil || again.Text != in.Text || again.Sender != in.Sender {
			t.Fatalf("%+v came back as %+v, %v", in, again, err)
		}
	})
}
