package service

import (
	"bytes"
	"fmt"
	"io"
	"path"

	"github.com/mortise-dev/mortise/internal/service/llm"
)

// llmFile is how many bytes a document in the scratch directory may have.
const llmFile = 32 << 20

// documentOf is a document that the plugin has in its scratch directory. It is
// read at once: the file may be another one later.
func (g *grant) documentOf(named, mime string) (*llm.Document, error) {
	if mime == "" {
		mime = "application/pdf"
	}
	file, err := g.openScratch(named)
	if err != nil {
		return nil, err
	}
	defer file.close()
	gap := func(format string, args ...any) error {
		return &llm.Error{Kind: llm.Gap, Message: fmt.Sprintf(format, args...) + "; extract the text and ask about that"}
	}
	if size := file.was.Size(); size > llmFile {
		return nil, gap("the document has %d bytes, and at most %d are sent", size, llmFile)
	}
	if !g.broker.Models.Enabled(g.target.Manifest.Name) || !g.broker.Models.Reads(mime) {
		return nil, gap("no configured model reads %.100s natively", mime)
	}
	data, err := io.ReadAll(io.LimitReader(file, llmFile+1))
	if err != nil {
		return nil, err
	}
	return &llm.Document{
		Name: path.Base(file.name), MIME: mime, Size: int64(len(data)), SHA256: "sha256:" + hashOf(string(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}, nil
}
