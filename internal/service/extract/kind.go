package extract

import (
	"archive/zip"
	"bytes"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The kinds of files that are read.
const (
	kindText  = "text"
	kindHTML  = "html"
	kindPDF   = "pdf"
	kindDOCX  = "docx"
	kindPPTX  = "pptx"
	kindXLSX  = "xlsx"
	kindMail  = "mail"
	kindImage = "image"

	kindPackage = "document" // a zip archive: which kind of document it is, the worker tells
)

var kindsByMIME = map[string]string{
	"application/pdf":       kindPDF,
	"application/x-pdf":     kindPDF,
	"text/html":             kindHTML,
	"application/xhtml+xml": kindHTML,
	"message/rfc822":        kindMail,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   kindDOCX,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": kindPPTX,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         kindXLSX,
	"application/json": kindText, "application/xml": kindText, "application/yaml": kindText, "application/x-yaml": kindText,
	"application/javascript": kindText, "application/x-ndjson": kindText, "application/toml": kindText, "application/sql": kindText,
}

var kindsByExtension = map[string]string{
	".pdf": kindPDF, ".html": kindHTML, ".htm": kindHTML, ".xhtml": kindHTML, ".docx": kindDOCX, ".pptx": kindPPTX, ".xlsx": kindXLSX, ".eml": kindMail,
}

// magics are the first bytes of files that are what these say, whatever their
// source calls them.
var magics = []struct{ begin, kind string }{
	{"%PDF-", kindPDF},
	{"\x89PNG\r\n\x1a\n", kindImage}, {"\xff\xd8\xff", kindImage}, {"GIF87a", kindImage}, {"GIF89a", kindImage},
	{"II*\x00", kindImage}, {"MM\x00*", kindImage}, {"BM", kindImage},
}

// kindOf finds out what a file is: by its first bytes, by what its source says,
// by its name, and last by being text.
func kindOf(f File) (string, error) {
	if len(f.Data) == 0 {
		return "", refuse(Empty, "the file is empty")
	}
	said, _, _ := mime.ParseMediaType(f.MIME)
	if said == "" {
		said = strings.ToLower(strings.TrimSpace(f.MIME))
	}
	claimed := claimedKind(said, f.Name)
	for _, m := range magics {
		if bytes.HasPrefix(f.Data, []byte(m.begin)) && (m.begin != "BM" || claimed == kindImage) {
			return m.kind, nil
		}
	}
	if bytes.HasPrefix(f.Data, []byte("RIFF")) && len(f.Data) > 12 && string(f.Data[8:12]) == "WEBP" {
		return kindImage, nil
	}
	if bytes.HasPrefix(f.Data, []byte("PK\x03\x04")) {
		return kindPackage, nil
	}
	switch claimed {
	case kindPDF: // the format allows something before its header
		if head := f.Data[:min(len(f.Data), 1024)]; bytes.Contains(head, []byte("%PDF-")) {
			return kindPDF, nil
		}
		return "", refuse(Unsupported, "the file is said to be a PDF and is none")
	case kindDOCX, kindPPTX, kindXLSX:
		if bytes.HasPrefix(f.Data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) { // a compound file: what encryption makes of them
			return "", refuse(Unsupported, "the %s is encrypted, or of the format before 2007; save it without a password as .%s", claimed, claimed)
		}
		return "", refuse(Unsupported, "the file is said to be a %s and is none", claimed)
	case kindImage:
		return "", refuse(Unsupported, "the file is said to be a picture and is of no kind that is read: png, jpeg, gif, tiff, bmp, webp")
	case kindHTML, kindMail:
		if isBinary(f.Data) {
			return "", refuse(Unsupported, "the file is said to be %s and is not text", claimed)
		}
		return claimed, nil
	}
	if isBinary(f.Data) {
		return "", refuse(Unsupported, "files of the type %.80s are not read", orUnknown(said))
	}
	return kindText, nil
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
		return kindImage
	case strings.HasPrefix(said, "text/"):
		return kindText
	}
	return kindsByExtension[strings.ToLower(filepath.Ext(name))]
}

// packageKind is which of the Office formats a zip archive is. Only its
// directory is read.
func packageKind(data []byte) (string, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", refuse(Unsupported, "the file begins like a zip archive and is none: %v", err)
	}
	for _, f := range archive.File {
		switch f.Name {
		case "word/document.xml":
			return kindDOCX, nil
		case "ppt/presentation.xml":
			return kindPPTX, nil
		case "xl/workbook.xml":
			return kindXLSX, nil
		}
	}
	return "", refuse(Unsupported, "the file is a zip archive and no document of Word, PowerPoint or Excel; unpack it and add what is inside")
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
