package extract

import (
	"bytes"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

var kindsByMIME = map[string]string{
	"application/pdf":       document.PDF,
	"application/x-pdf":     document.PDF,
	"text/html":             document.HTML,
	"application/xhtml+xml": document.HTML,
	"message/rfc822":        document.Mail,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   document.DOCX,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": document.PPTX,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         document.XLSX,
	"application/json": document.Text, "application/xml": document.Text, "application/yaml": document.Text, "application/x-yaml": document.Text,
	"application/javascript": document.Text, "application/x-ndjson": document.Text, "application/toml": document.Text, "application/sql": document.Text,
}

var kindsByExtension = map[string]string{
	".pdf": document.PDF, ".html": document.HTML, ".htm": document.HTML, ".xhtml": document.HTML, ".docx": document.DOCX, ".pptx": document.PPTX, ".xlsx": document.XLSX, ".eml": document.Mail,
}

// magics are the first bytes of files that are what these say, whatever their
// source calls them.
var magics = []struct{ begin, kind string }{
	{"%PDF-", document.PDF},
	{"\x89PNG\r\n\x1a\n", document.Image}, {"\xff\xd8\xff", document.Image}, {"GIF87a", document.Image}, {"GIF89a", document.Image},
	{"II*\x00", document.Image}, {"MM\x00*", document.Image}, {"BM", document.Image},
}

// kindOf finds out what a file is: by its first bytes, by what its source says,
// by its name, and last by being text.
func kindOf(f File) (string, error) {
	if len(f.Data) == 0 {
		return "", document.Refuse(document.Empty, "the file is empty")
	}
	said, _, _ := mime.ParseMediaType(f.MIME)
	if said == "" {
		said = strings.ToLower(strings.TrimSpace(f.MIME))
	}
	claimed := claimedKind(said, f.Name)
	for _, m := range magics {
		if bytes.HasPrefix(f.Data, []byte(m.begin)) && (m.begin != "BM" || claimed == document.Image) {
			return m.kind, nil
		}
	}
	if bytes.HasPrefix(f.Data, []byte("RIFF")) && len(f.Data) > 12 && string(f.Data[8:12]) == "WEBP" {
		return document.Image, nil
	}
	if bytes.HasPrefix(f.Data, []byte("PK\x03\x04")) {
		return document.Package, nil
	}
	switch claimed {
	case document.PDF: // the format allows something before its header
		if head := f.Data[:min(len(f.Data), 1024)]; bytes.Contains(head, []byte("%PDF-")) {
			return document.PDF, nil
		}
		return "", document.Refuse(document.Unsupported, "the file is said to be a PDF and is none")
	case document.DOCX, document.PPTX, document.XLSX:
		if bytes.HasPrefix(f.Data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) { // a compound file: what encryption makes of them
			return "", document.Refuse(document.Unsupported, "the %s is encrypted, or of the format before 2007; save it without a password as .%s", claimed, claimed)
		}
		return "", document.Refuse(document.Unsupported, "the file is said to be a %s and is none", claimed)
	case document.Image:
		return "", document.Refuse(document.Unsupported, "the file is said to be a picture and is of no kind that is read: png, jpeg, gif, tiff, bmp, webp")
	case document.HTML, document.Mail:
		if isBinary(f.Data) {
			return "", document.Refuse(document.Unsupported, "the file is said to be %s and is not text", claimed)
		}
		return claimed, nil
	}
	if isBinary(f.Data) {
		return "", document.Refuse(document.Unsupported, "files of the type %.80s are not read", orUnknown(said))
	}
	return document.Text, nil
}

func orUnknown(said string) string {
	if said == "" || said == "application/octet-stream" {
		return "that these bytes have"
	}
	return said
}

// claimedKind is what a file's source says it is.
func claimedKind(said, name string) string {
	if kind := kindsByMIME[said]; kind != "" {
		return kind
	}
	switch {
	case strings.HasPrefix(said, "image/") && said != "image/svg+xml":
		return document.Image
	case strings.HasPrefix(said, "text/"):
		return document.Text
	}
	return kindsByExtension[strings.ToLower(filepath.Ext(name))]
}

// isBinary reports whether bytes are no text of any encoding that is read.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8192)]
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return false // UTF-16
	}
	if slices.Contains(head, 0) {
		return true
	}
	controls := 0
	for _, b := range head {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != 0x1b {
			controls++
		}
	}
	return controls > len(head)/50 && !utf8.Valid(data[:min(len(data), 4096)]) || controls > len(head)/10
}
