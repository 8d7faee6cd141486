package reader

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/mortise-dev/mortise/internal/service/extract/document"
)

// Bounds of an Office document: what its archive may hold once it is inflated.
const (
	maxInflated = 128 << 20
	maxMembers  = 10_000
	maxDepth    = 1000 // of elements
)

// packageKind is which of the Office formats a zip archive is. Only its
// directory is read.
func packageKind(data []byte) (string, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", document.Refuse(document.Unsupported, "the file begins like a zip archive and is none: %v", err)
	}
	for _, f := range archive.File {
		switch f.Name {
		case "word/document.xml":
			return document.DOCX, nil
		case "ppt/presentation.xml":
			return document.PPTX, nil
		case "xl/workbook.xml":
			return document.XLSX, nil
		}
	}
	return "", document.Refuse(document.Unsupported, "the file is a zip archive and no document of Word, PowerPoint or Excel; unpack it and add what is inside")
}

// officeText returns the text of a document of Word or PowerPoint.
func officeText(kind string, data []byte) (content, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return content{}, document.Refuse(document.Unsupported, "the %s is no archive that can be read: %v", kind, err)
	}
	if len(archive.File) > maxMembers {
		return content{}, document.Refuse(document.TooLarge, "the %s holds %d files; at most %d are looked at", kind, len(archive.File), maxMembers)
	}
	o := office{left: maxInflated}
	parts := o.parts(kind, archive)
	if len(parts) == 0 {
		return content{}, document.Refuse(document.Unsupported, "the %s holds no text part", kind)
	}
	for _, f := range parts {
		if err := o.part(f); err != nil {
			return content{}, err
		}
	}
	return content{Text: o.text.String(), Title: o.title(archive), Method: "text", Engine: kind, Confidence: 1, Details: map[string]any{"parts": len(parts)}}, nil
}

// An office is a document while it is read.
type office struct {
	text bytes.Buffer
	left int64 // bytes that may still be inflated
}

// parts are the members with text, in the order in which people read them.
func (o *office) parts(kind string, archive *zip.Reader) []*zip.File {
	type numbered struct {
		file *zip.File
		n    int
	}
	var found []numbered
	for _, f := range archive.File {
		dir, name := path.Split(f.Name)
		switch {
		case kind == document.DOCX && f.Name == "word/document.xml":
			found = append(found, numbered{f, 0})
		case kind == document.DOCX && dir == "word/" && (name == "footnotes.xml" || name == "endnotes.xml"):
			found = append(found, numbered{f, 1})
		case kind == document.PPTX && (dir == "ppt/slides/" || dir == "ppt/notesSlides/"):
			n, err := strconv.Atoi(strings.TrimFunc(strings.TrimSuffix(name, ".xml"), func(r rune) bool { return r < '0' || r > '9' }))
			if err != nil {
				continue
			}
			n *= 2
			if dir == "ppt/notesSlides/" {
				n++
			}
			found = append(found, numbered{f, n})
		}
	}
	slices.SortStableFunc(found, func(a, b numbered) int { return a.n - b.n })
	var files []*zip.File
	for _, f := range found {
		files = append(files, f.file)
	}
	return files
}

// open returns a member, which gives an error in place of too much.
func (o *office) open(f *zip.File) (io.Reader, func() error, error) {
	r, err := f.Open()
	if err != nil {
		return nil, nil, document.Refuse(document.Unsupported, "%.200s in the archive cannot be read: %v", f.Name, err)
	}
	return &counted{r, &o.left}, r.Close, nil
}

// part adds the text of a member.
func (o *office) part(f *zip.File) error {
	r, done, err := o.open(f)
	if err != nil {
		return err
	}
	defer done()
	d := xml.NewDecoder(r)
	d.Strict = true
	depth, inText := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		var refused *document.Refusal
		if errors.As(err, &refused) {
			return err
		}
		if err != nil {
			return document.Refuse(document.Unsupported, "%.200s in the archive is no XML: %v", f.Name, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return document.Refuse(document.TooLarge, "%.200s nests elements deeper than %d", f.Name, maxDepth)
			}
			switch t.Name.Local {
			case "t":
				inText++
			case "tab":
				o.text.WriteByte('\t')
			case "br", "cr":
				o.text.WriteByte('\n')
			}
		case xml.EndElement:
			depth--
			switch t.Name.Local {
			case "t":
				inText--
			case "p":
				o.text.WriteByte('\n')
			case "tc":
				o.cell()
			case "tr", "sp":
				o.text.WriteByte('\n')
			}
		case xml.CharData:
			if inText > 0 {
				o.text.Write(t)
			}
		}
		if o.text.Len() > document.MaxText {
			return document.Refuse(document.TooLarge, "the text of the file has more than %d bytes", document.MaxText)
		}
	}
	o.text.WriteByte('\n')
	return nil
}

// cell ends a cell of a table, in place of the end of its last paragraph.
func (o *office) cell() {
	if n := o.text.Len(); n > 0 && o.text.Bytes()[n-1] == '\n' {
		o.text.Truncate(n - 1)
	}
	o.text.WriteString(" | ")
}

// title returns what the document calls itself.
func (o *office) title(archive *zip.Reader) string {
	for _, f := range archive.File {
		if f.Name != "docProps/core.xml" {
			continue
		}
		r, done, err := o.open(f)
		if err != nil {
			return ""
		}
		defer done()
		var core struct {
			Title string `xml:"title"`
		}
		if xml.NewDecoder(io.LimitReader(r, 1<<20)).Decode(&core) == nil {
			return strings.TrimSpace(core.Title)
		}
	}
	return ""
}

// A counted reader ends with a refusal where more comes than is left.
type counted struct {
	r    io.Reader
	left *int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if *c.left -= int64(n); *c.left < 0 {
		return 0, document.Refuse(document.TooLarge, "the file inflates to more than %d bytes", maxInflated)
	}
	return n, err
}

// sheetText returns the cells of a workbook of Excel, a line for each row.
func sheetText(data []byte) (content, error) {
	if err := inflates(data); err != nil {
		return content{}, err
	}
	book, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: maxInflated, UnzipXMLSizeLimit: 16 << 20})
	if err != nil {
		return content{}, document.Refuse(document.Unsupported, "the workbook cannot be read: %v", err)
	}
	defer book.Close()
	var b strings.Builder
	sheets := book.GetSheetList()
	for _, sheet := range sheets {
		fmt.Fprintf(&b, "## %s\n\n", sheet)
		rows, err := book.Rows(sheet)
		if err != nil {
			continue // a chart
		}
		for rows.Next() {
			cells, err := rows.Columns()
			if err != nil {
				_ = rows.Close()
				return content{}, document.Refuse(document.Unsupported, "the sheet %.100s cannot be read: %v", sheet, err)
			}
			if line := strings.TrimRight(strings.Join(cells, "\t"), "\t"); line != "" {
				b.WriteString(line + "\n")
			}
			if b.Len() > document.MaxText {
				_ = rows.Close()
				return content{}, document.Refuse(document.TooLarge, "the text of the workbook has more than %d bytes", document.MaxText)
			}
		}
		_ = rows.Close()
		b.WriteByte('\n')
	}
	return content{Text: b.String(), Method: "text", Engine: "excelize", Confidence: 1, Details: map[string]any{"sheets": len(sheets)}}, nil
}

// inflates refuses an archive that becomes too much, by inflating it: what its
// directory says may be a lie.
func inflates(data []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return document.Refuse(document.Unsupported, "the workbook is no archive that can be read: %v", err)
	}
	if len(archive.File) > maxMembers {
		return document.Refuse(document.TooLarge, "the workbook holds %d files; at most %d are looked at", len(archive.File), maxMembers)
	}
	o := office{left: maxInflated}
	for _, f := range archive.File {
		r, done, err := o.open(f)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		_ = done()
		var refused *document.Refusal
		if errors.As(err, &refused) {
			return err
		}
		if err != nil {
			return document.Refuse(document.Unsupported, "%.200s in the workbook cannot be read: %v", f.Name, err)
		}
	}
	return nil
}
