package report

import (
	"bytes"
	"fmt"
	escape "html"
)

// An html is a page that needs nothing else: it has no script, no link and no image, and its
// policy refuses each to a browser.
type html struct {
	b    bytes.Buffer
	list bool // an item was the last
}

const head = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
body { font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; overflow-wrap: anywhere }
li li { color: #555; font-size: 13px }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 11px; color: #777; max-height: 12rem; overflow: auto }
</style>
</head>
<body>
<h1>%s</h1>
`

func (h *html) text(text string) string { return escape.EscapeString(plain(text)) }

func (h *html) begin(title string) { fmt.Fprintf(&h.b, head, h.text(title), h.text(title)) }

func (h *html) close() {
	if h.list {
		h.b.WriteString("</ul>\n")
	}
	h.list = false
}

func (h *html) heading(level int, text string) {
	h.close()
	fmt.Fprintf(&h.b, "<h%d>%s</h%d>\n", level, h.text(text), level)
}

func (h *html) paragraph(text string) {
	h.close()
	fmt.Fprintf(&h.b, "<p>%s</p>\n", h.text(text))
}

func (h *html) item(text string, beneath ...string) {
	if !h.list {
		h.b.WriteString("<ul>\n")
	}
	h.list = true
	fmt.Fprintf(&h.b, "<li>%s", h.text(text))
	if len(beneath) > 0 {
		h.b.WriteString("\n<ul>\n")
		for _, line := range beneath {
			fmt.Fprintf(&h.b, "<li>%s</li>\n", h.text(line))
		}
		h.b.WriteString("</ul>\n")
	}
	h.b.WriteString("</li>\n")
}

func (h *html) end(data string) {
	h.close()
	fmt.Fprintf(&h.b, "<pre>\n%s\n</pre>\n</body>\n</html>\n", data)
}

func (h *html) bytes() []byte { return h.b.Bytes() }
