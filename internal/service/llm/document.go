package llm

import (
	"fmt"
	"io"
	"strings"
)

// path returns how a document reaches a model that reads it: from where it is
// already, or sent along.
func (m *Model) path(doc *Document) string {
	scheme, _, found := strings.Cut(doc.URI, "://")
	if found {
		for _, s := range m.URIs {
			if s == scheme {
				return PathURI
			}
		}
	}
	if doc.Open != nil && doc.Size <= m.MaxInline {
		return PathInline
	}
	return PathNone
}

// content returns a document's bytes, which are read once for all attempts.
func (x *exchange) content() ([]byte, *Error) {
	if x.data != nil {
		return x.data, nil
	}
	doc := x.q.Document
	r, err := doc.Open()
	if err != nil {
		return nil, &Error{Kind: Internal, Message: "the document cannot be read", Err: err}
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, doc.Size+1))
	switch {
	case err != nil:
		return nil, &Error{Kind: Internal, Message: "the document cannot be read", Err: err}
	case int64(len(data)) != doc.Size:
		return nil, &Error{Kind: Internal, Message: fmt.Sprintf("the document has %d bytes and not %d, as it had when it was filed", len(data), doc.Size)}
	}
	x.data = data
	return data, nil
}

// parts returns what goes before the prompt, and how it gets there.
func (x *exchange) parts(m *Model, path string) ([]Part, *Error) {
	switch {
	case x.q.Image != nil:
		return []Part{{MIME: x.q.Image.MIME, Name: "image", Data: x.q.Image.Data}}, nil
	case x.q.Document == nil:
		return nil, nil
	}
	doc := x.q.Document
	part := Part{MIME: doc.MIME, Name: doc.Name}
	if path == PathURI {
		part.URI = doc.URI
		return []Part{part}, nil
	}
	data, failure := x.content()
	if failure != nil {
		return nil, failure
	}
	part.Data = data
	return []Part{part}, nil
}
