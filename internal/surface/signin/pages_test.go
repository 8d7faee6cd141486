package signin

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// What comes from an account, a provider or the configuration is text in every page.
func TestPagesEscapeWhatTheyShow(t *testing.T) {
	t.Parallel()
	const hostile = `"><script>alert('x')</script>&`
	v := view{Title: hostile, Text: hostile, Asker: hostile, Action: hostile, Button: hostile, Console: hostile, Providers: []choice{{hostile, hostile}}}
	for name, body := range map[string]page{"message": messagePage, "choose": choosePage, "home": homePage, "form": formPage} {
		w := httptest.NewRecorder()
		new(Server).show(w, 200, body, v)
		text := w.Body.String()
		if strings.Contains(text, hostile) || strings.Contains(text, "<script>alert") || strings.Contains(text, `=""`) {
			t.Errorf("%s: what is shown is no text:\n%s", name, text)
		}
		if !strings.Contains(text, "&#34;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;") {
			t.Errorf("%s: what is to be shown is not there:\n%s", name, text)
		}
	}
	v.Providers = nil
	if text := choosePage(v); !strings.Contains(text, "<p>") || strings.Contains(text, "<ul>") {
		t.Errorf("without providers: %s", text)
	}
}
