package reader

import (
	"bytes"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// enough is how much of a page an article must be before the rest is left out.
const enough = 400

// htmlText returns the article of a page as Markdown, or all of it where it is
// none.
func htmlText(data []byte, mime string) (content, error) {
	source, _ := decode(data, mime)
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return content{}, document.Refuse(document.Unsupported, "the HTML cannot be read: %v", err)
	}
	t := content{Method: "text", Engine: "html-to-markdown", Confidence: 1, Details: map[string]any{"article": false}}
	t.Title = titleOf(doc)
	if readability.CheckDocument(doc) {
		if article, err := readability.FromDocument(doc, nil); err == nil {
			var b bytes.Buffer
			if article.Node != nil && article.RenderHTML(&b) == nil {
				if text, err := markdown(b.String()); err == nil && len(text) >= enough {
					t.Text, t.Details["article"] = text, true
					if t.Title == "" {
						t.Title = article.Title()
					}
					return t, nil
				}
			}
		}
	}
	t.Text, err = markdown(source)
	if err != nil {
		return content{}, document.Refuse(document.Unsupported, "the HTML cannot be turned into text: %v", err)
	}
	return t, nil
}

func markdown(source string) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	c.Register.TagType("img", converter.TagTypeRemove, converter.PriorityEarly) // their text says little, and data: addresses are long
	return c.ConvertString(source)
}

// titleOf returns what is in the title element.
func titleOf(n *html.Node) string {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == "title" && d.FirstChild != nil && d.FirstChild.Type == html.TextNode {
			return strings.Join(strings.Fields(d.FirstChild.Data), " ")
		}
	}
	return ""
}
