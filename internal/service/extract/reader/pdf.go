package reader

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// maxStarts is of how many pages it is told where they begin.
const maxStarts = 2000

// How a page is drawn for OCR.
const (
	maxDots    = 2400 // of its longer side
	memoryPage = 64 << 10
)

// A pdfReader is PDFium, compiled to WebAssembly. It belongs to one goroutine.
type pdfReader struct {
	pool     pdfium.Pool
	instance pdfium.Pdfium
}

// newPDFReader starts PDFium. dir holds what was compiled before; without it
// that takes seconds.
func newPDFReader(dir string, memory int64) (*pdfReader, error) {
	config := webassembly.Config{
		MinIdle: 1, MaxIdle: 1, MaxTotal: 1, ReuseWorkers: true, Stdout: io.Discard, Stderr: io.Discard,
		FSConfig: wazero.NewFSConfig(), // of the files of this machine it sees none
	}
	start := func(cache wazero.CompilationCache) (pdfium.Pool, error) {
		config.RuntimeConfig = wazero.NewRuntimeConfig().WithMemoryLimitPages(uint32(min(memory/2/memoryPage, 1<<16)))
		if cache != nil {
			config.RuntimeConfig = config.RuntimeConfig.WithCompilationCache(cache)
		}
		return webassembly.Init(config)
	}
	var p pdfium.Pool
	err := errors.New("there is no directory for what is compiled")
	if dir != "" {
		var cache wazero.CompilationCache
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err == nil {
			p, err = start(cache)
		}
	}
	if err != nil { // it is not there, and cannot be written from a cage
		if p, err = start(nil); err != nil {
			return nil, err
		}
	}
	instance, err := p.GetInstance(time.Minute)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &pdfReader{p, instance}, nil
}

// compile compiles PDFium into a directory. It takes seconds and much memory, so it is a process of its own.
func compile(ctx context.Context, dir string) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	p, err := webassembly.Init(webassembly.Config{
		MinIdle: 0, MaxIdle: 1, MaxTotal: 1, Stdout: io.Discard, Stderr: io.Discard, FSConfig: wazero.NewFSConfig(),
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache),
	})
	if err != nil {
		return err
	}
	return p.Close()
}

// open opens a document. The caller closes it.
func (r *pdfReader) open(data []byte) (references.FPDF_DOCUMENT, int, error) {
	doc, err := r.instance.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		switch {
		case errors.Is(err, pdfiumerrors.ErrPassword), errors.Is(err, pdfiumerrors.ErrSecurity):
			return "", 0, document.Refuse(document.Unsupported, "the PDF is encrypted and needs a password; save it without one")
		}
		return "", 0, document.Refuse(document.Unsupported, "the PDF is damaged and cannot be opened")
	}
	count, err := r.instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		r.close(doc.Document)
		return "", 0, document.Refuse(document.Unsupported, "the PDF is damaged: its pages cannot be counted")
	}
	return doc.Document, count.PageCount, nil
}

func (r *pdfReader) close(doc references.FPDF_DOCUMENT) {
	_, _ = r.instance.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: doc})
}

// text returns the text that is in a document as text.
func (r *pdfReader) text(data []byte) (content, error) {
	doc, pages, err := r.open(data)
	if err != nil {
		return content{}, err
	}
	defer r.close(doc)
	var b strings.Builder
	broken := 0
	starts := make([]int, 0, min(pages, maxStarts)) // in characters, where each page begins
	length := 0
	for i := range pages {
		page, err := r.instance.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}})
		if err != nil {
			broken++
			page = &responses.GetPageText{}
		}
		tidied := document.Tidy(page.Text) // page by page, so that a place in the text stays one
		if tidied != "" && b.Len() > 0 {
			b.WriteString("\n\n")
			length += 2
		}
		if len(starts) < maxStarts {
			starts = append(starts, length)
		}
		b.WriteString(tidied)
		length += utf8.RuneCountInString(tidied)
		if b.Len() > document.MaxText {
			return content{}, document.Refuse(document.TooLarge, "the text of the PDF has more than %d bytes", document.MaxText)
		}
	}
	t := content{Text: b.String(), Method: "pdf_text", Engine: "pdfium", Confidence: 1, Details: map[string]any{"pages": pages, "page_starts": starts}}
	if broken > 0 {
		t.Details["unreadable_pages"] = broken
	}
	if meta, err := r.instance.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc, Tag: "Title"}); err == nil {
		t.Title = strings.TrimSpace(meta.Value)
	}
	return t, nil
}

// draw returns one page as a PNG, and how many there are.
func (r *pdfReader) draw(data []byte, index int) (picture []byte, pages int, err error) {
	doc, pages, err := r.open(data)
	if err != nil {
		return nil, 0, err
	}
	defer r.close(doc)
	if index >= pages {
		return nil, pages, nil
	}
	page, err := r.instance.RenderPageInPixels(&requests.RenderPageInPixels{
		Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: index}}, Width: maxDots, Height: maxDots,
	})
	if err != nil {
		return nil, pages, document.Refuse(document.Unsupported, "page %d of the PDF cannot be drawn", index+1)
	}
	defer page.Cleanup()
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, page.Result.Image); err != nil {
		return nil, pages, err
	}
	return b.Bytes(), pages, nil
}
