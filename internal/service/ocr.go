package service

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/service/extract"
)

const (
	ocrName = "ocr"
	ocrText = "ocr.extract_text"
)

// Files is where the service has text won from files.
type Files interface {
	Extract(ctx context.Context, f extract.File, mode extract.Mode) (extract.Text, error)
}

// An extracted is the value of ocr.extract_text.
type extracted struct {
	Text     string     `json:"text"`
	Metadata extraction `json:"metadata"`
}

type extraction struct {
	Method     string         `json:"method"`
	Engine     string         `json:"engine"`
	Confidence float64        `json:"confidence"`
	Duration   float64        `json:"duration"`
	Details    map[string]any `json:"details"`
}

// ocrExtract answers ocr.extract_text. What a feed's OCR mode is does not count
// here; without a mode text is read from pictures where there are any.
func ocrExtract(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		File     file   `json:"file"`
		MIME     string `json:"mime_type"`
		Filename string `json:"filename"`
		Mode     string `json:"mode"`
	}
	if err := decode(ocrText, args, &in); err != nil {
		return nil, err
	}
	if in.Mode == "" {
		in.Mode = string(extract.Auto)
	}
	mode, err := extract.ParseMode(in.Mode)
	if err != nil {
		return nil, err
	}
	if g.broker.Files == nil {
		return nil, nowhere(ocrText)
	}
	data, err := in.File.read(g, ocrText)
	if err != nil {
		return nil, err
	}
	t, err := g.broker.Files.Extract(ctx, extract.File{Data: data, MIME: in.MIME, Name: in.Filename}, mode)
	if err != nil {
		return nil, extract.Coded(err)
	}
	return extracted{t.Text, extraction{t.Method, t.Engine, t.Confidence, t.Took.Round(time.Millisecond).Seconds(), t.Details}}, nil
}
