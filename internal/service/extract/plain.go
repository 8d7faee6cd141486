package extract

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// Plain returns the words of a small piece of HTML, without a worker: it is only
// cut into its tokens, nothing is built of them.
func Plain(source string) string {
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(source))
	hidden := 0
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return document.Tidy(b.String())
		case html.TextToken:
			if hidden == 0 {
				b.Write(tokens.Text())
			}
		case html.StartTagToken:
			name, _ := tokens.TagName()
			switch string(name) {
			case "script", "style", "title":
				hidden++
			case "p", "div", "br", "li", "tr", "h1", "h2", "h3", "table", "blockquote":
				b.WriteByte('\n')
			case "td", "th":
				b.WriteByte('\t')
			}
		case html.SelfClosingTagToken:
			if name, _ := tokens.TagName(); string(name) == "br" {
				b.WriteByte('\n')
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); hidden > 0 && (string(name) == "script" || string(name) == "style" || string(name) == "title") {
				hidden--
			}
		}
	}
}
