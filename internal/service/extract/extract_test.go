package extract_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/extract/reader"
	"github.com/mortise-dev/mortise/plugin"
)

// hang is the first argument of a worker that answers nothing.
const hang = "hang"

// asReader is the first argument of this program where it is the reader of documents.
const asReader = "reader"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asReader {
		os.Exit(reader.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == hang {
		<-time.After(time.Hour) // until the process is killed
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is where PDFium is compiled, once for all tests.
var shared struct {
	once sync.Once
	dir  string
}

func open(t *testing.T, change func(*extract.Options)) *extract.Extractor {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "pdfium-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
	})
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := extract.Options{Sandbox: box, Command: []string{program, asReader}, Dir: shared.dir, Scratch: t.TempDir(), Tesseract: "no-tesseract-here"}
	if change != nil {
		change(&o)
	}
	x := extract.New(o)
	t.Cleanup(func() {
		if err := errors.Join(x.Close(), x.Close(), box.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// needsPDFium skips a test that would wait for it too long.
func needsPDFium(t *testing.T, needed bool) {
	t.Helper()
	if raced && needed {
		t.Skip("PDFium takes minutes to compile under the race detector; make test runs this package without it")
	}
}

// archive is a zip file of alternating names and contents.
func archive(parts ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		f, err := w.Create(parts[i])
		if err != nil {
			panic(err)
		}
		if _, err := io.WriteString(f, parts[i+1]); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const (
	wordNS  = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`
	drawNS  = `xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"`
	docxOne = `<?xml version="1.0"?><w:document ` + wordNS + `><w:body>
<w:p><w:r><w:t>The quarterly </w:t></w:r><w:r><w:t>report</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>north</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>42</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
</w:body></w:document>`
)

func docx() []byte {
	return archive("[Content_Types].xml", "<Types/>", "word/document.xml", docxOne,
		"docProps/core.xml", `<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>Q3</dc:title></cp:coreProperties>`)
}

func pptx() []byte {
	slide := func(text string) string {
		return `<p:sld ` + drawNS + `><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>`
	}
	return archive("ppt/presentation.xml", "<x/>", "ppt/slides/slide10.xml", slide("tenth"), "ppt/slides/slide2.xml", slide("second"),
		"ppt/notesSlides/notesSlide2.xml", slide("spoken"), "ppt/slides/slide1.xml", slide("first"))
}

func xlsx(t *testing.T) []byte {
	book := excelize.NewFile()
	defer book.Close()
	for cell, value := range map[string]any{"A1": "region", "B1": "sum", "A2": "north", "B2": 42} {
		if err := book.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := book.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pdf is a document with one page for each text, none of them with an image.
func pdf(encrypt string, pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(text string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), text)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i, text := range pages {
		content := "BT /F1 18 Tf 72 700 Td (" + text + ") Tj ET"
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, encrypt, start)
	return b.Bytes()
}

// locked is a trailer's entry that asks for a password, which is not available.
const locked = `/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44
/O <0000000000000000000000000000000000000000000000000000000000000001> /U <0000000000000000000000000000000000000000000000000000000000000002> >>`

// What a header of a mail says ends no line of its text: an encoded word may hold
// any character.
func TestNoHeaderOfAMailBeginsAnother(t *testing.T) {
	t.Parallel()
	x := open(t, nil)
	for _, end := range []string{"=0A", "=0D", "=0D=0A", "=0A=0A", "=0B", "=0C", "=00", "=C2=85", "=E2=80=A8", "=E2=80=A9"} {
		bad := "=?utf-8?q?Hello" + end + "From:_boss" + end + "Pay?="
		for _, header := range []string{"Subject", "From", "To", "Cc", "Date"} {
			value := bad
			if header != "Subject" && header != "Date" {
				value += " <ada@example.com>"
			}
			text := header + ": " + value + "\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nThe body.\r\n" +
				"--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=\"" + bad + "\"\r\n\r\nx\r\n--b--\r\n"
			got, err := x.Extract(t.Context(), extract.File{Data: []byte(text), MIME: "message/rfc822"}, extract.Fallback)
			if err != nil {
				t.Fatalf("%s with %s: %v", header, end, err)
			}
			lines := strings.Split(strings.TrimSpace(got.Text), "\n")
			if len(lines) != 5 || !strings.HasPrefix(lines[0], header+": ") || lines[2] != "The body." || !strings.HasPrefix(lines[4], "Attachments: ") || strings.ContainsAny(got.Title, "\n\r\v\f\x00\u0085\u2028\u2029") {
				t.Errorf("%s with %s: %q, titled %q", header, end, lines, got.Title)
			}
		}
	}
}

const mail = "From: Ada <ada@example.com>\r\nTo: bob@example.com\r\nSubject: =?utf-8?q?Caf=C3=A9?= plans\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
	"Meet at the caf=E9.\r\n--b\r\nContent-Type: application/pdf; name=map.pdf\r\nContent-Disposition: attachment; filename=map.pdf\r\n\r\nx\r\n--b--\r\n"

// TestFormatsGiveTheirText reads a real file of each format, in a real cage.
func TestFormatsGiveTheirText(t *testing.T) {
	x := open(t, nil)
	article := "<p>" + strings.Repeat("The river had risen in the night, and the town woke to water in the streets, brown and slow. ", 20) + "</p>"
	for _, test := range []struct {
		name         string
		file         extract.File
		kind, method string
		title        string
		want         []string
		not          string
	}{
		{"text", extract.File{Data: []byte("plain words\r\nin lines"), MIME: "text/plain"}, "text", "text", "", []string{"plain words\nin lines"}, "\r"},
		{"latin 1", extract.File{Data: []byte("caf\xe9"), MIME: "text/plain"}, "text", "text", "", []string{"café"}, ""},
		{"utf-16", extract.File{Data: []byte("\xff\xfeh\x00i\x00")}, "text", "text", "", []string{"hi"}, ""},
		{"html", extract.File{Data: []byte("<title>A page</title><h1>Head</h1><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table><script>no()</script>"), MIME: "text/html"},
			"html", "text", "A page", []string{"# Head", "| 1 | 2 |"}, "no()"},
		{"article", extract.File{Data: []byte("<html><body><nav><a href=/>menu</a></nav><article><h1>Flood</h1>" + article + article + "</article><footer>imprint</footer></body></html>"), Name: "a.html"},
			"html", "text", "", []string{"The river had risen"}, "imprint"},
		{"pdf", extract.File{Data: pdf("", "First page", "Second page"), MIME: "application/pdf"}, "pdf", "pdf_text", "", []string{"First page", "Second page"}, ""},
		{"docx", extract.File{Data: docx(), MIME: "application/octet-stream"}, "docx", "text", "Q3", []string{"The quarterly report", "north | 42"}, ""},
		{"pptx", extract.File{Data: pptx()}, "pptx", "text", "", []string{"first", "second\n\n\nspoken\n\n\ntenth"}, ""},
		{"xlsx", extract.File{Data: xlsx(t)}, "xlsx", "text", "", []string{"## Sheet1", "north\t42"}, ""},
		{"mail", extract.File{Data: []byte(mail), MIME: "message/rfc822"}, "mail", "text", "Café plans", []string{"From: Ada", "Meet at the café.", "Attachments: map.pdf"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			needsPDFium(t, strings.Contains(strings.ToLower(test.name), "pdf"))
			if raced && strings.Contains(test.name, "inflates") {
				t.Skip("inflating takes a minute under the race detector; make test runs this package without it")
			}
			got, err := x.Extract(t.Context(), test.file, extract.Fallback)
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != test.kind || got.Method != test.method || got.Title != test.title {
				t.Errorf("%s by %s, title %q; want %s by %s, %q", got.Kind, got.Method, got.Title, test.kind, test.method, test.title)
			}
			for _, want := range test.want {
				if !strings.Contains(got.Text, want) {
					t.Errorf("%q is not in %q", want, got.Text)
				}
			}
			if test.not != "" && strings.Contains(got.Text, test.not) {
				t.Errorf("%q is in %q", test.not, got.Text)
			}
		})
	}
}

// TestTheProgramThatTheHostCarriesReads takes no other program: it is put on the disk for the
// first file, and the next host that was built the same finds it there.
func TestTheProgramThatTheHostCarriesReads(t *testing.T) {
	if _, err := os.Stat("bin/docread.gz"); err != nil {
		t.Skip("make build has not put the program there: ", err)
	}
	dir := filepath.Join(t.TempDir(), "made")
	var first os.FileInfo
	for range 2 {
		x := open(t, func(o *extract.Options) { o.Command, o.Dir = nil, dir })
		for _, f := range []extract.File{{Data: docx()}, {Data: xlsx(t)}, {Data: []byte(mail), MIME: "message/rfc822"}, {Data: []byte("caf\xe9"), MIME: "text/plain"}} {
			if got, err := x.Extract(t.Context(), f, extract.Never); err != nil || got.Text == "" {
				t.Errorf("%.40q gives %q: %v", f.Data, got.Text, err)
			}
		}
		info, err := os.Stat(filepath.Join(dir, "docread"))
		if err != nil || info.Mode().Perm() != 0o500 {
			t.Fatalf("the program: %v, %v", info, err)
		}
		if first != nil && !os.SameFile(first, info) {
			t.Error("the program was written again")
		}
		first = info
	}
	x := open(t, func(o *extract.Options) { o.Command, o.Dir = nil, "" })
	if _, err := x.Extract(t.Context(), extract.File{Data: docx()}, extract.Never); plugin.CodeOf(err) != plugin.CodeLaunchFailed {
		t.Errorf("without a directory: %v", err)
	}
}

// bomb is an archive of one member that inflates to so many MiB.
func bomb(name string, mib int) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, _ := w.Create(name)
	_, _ = io.WriteString(f, `<w:document `+wordNS+`><w:body>`)
	for range mib {
		_, _ = f.Write(bytes.Repeat([]byte("<w:p></w:p>     "), 1<<16))
	}
	_ = w.Close()
	return b.Bytes()
}

// TestBadFilesAreRefused is everything that a stranger may send: each is refused
// with a reason, and the next file is read as if nothing had been.
func TestBadFilesAreRefused(t *testing.T) {
	x := open(t, nil)
	deep := `<w:document ` + wordNS + `>` + strings.Repeat("<w:p>", 5000)
	for _, test := range []struct {
		name   string
		file   extract.File
		reason string
		says   string
	}{
		{"a PDF that is none", extract.File{Data: []byte("hello"), MIME: "application/pdf"}, extract.Unsupported, "is none"},
		{"a PDF that begins like one", extract.File{Data: []byte("%PDF-1.7\n" + strings.Repeat("junk ", 200)), MIME: "application/pdf"}, extract.Unsupported, "damaged"},
		{"an encrypted PDF", extract.File{Data: pdf(locked, "secret"), MIME: "application/pdf"}, extract.Unsupported, "encrypted"},
		{"a PDF without text", extract.File{Data: pdf("", ""), MIME: "application/pdf"}, extract.Empty, "tesseract is not installed"},
		{"a DOCX that inflates", extract.File{Data: bomb("word/document.xml", 200), Name: "a.docx"}, extract.TooLarge, "inflates"},
		{"an XLSX that inflates", extract.File{Data: archiveWith("xl/workbook.xml", bomb("x", 200)), Name: "a.xlsx"}, extract.Unsupported, ""},
		{"a DOCX nested too deep", extract.File{Data: archive("word/document.xml", deep)}, extract.TooLarge, "nests"},
		{"a DOCX that is broken XML", extract.File{Data: archive("word/document.xml", "<a><b></a>")}, extract.Unsupported, "no XML"},
		{"a DOCX that is none", extract.File{Data: []byte("hello"), Name: "a.docx", MIME: "application/vnd.openxmlformats-officedocument.wordprocessingml.document"}, extract.Unsupported, "is none"},
		{"a cut archive", extract.File{Data: docx()[:200], Name: "a.docx"}, extract.Unsupported, "zip"},
		{"another archive", extract.File{Data: archive("a.txt", "x")}, extract.Unsupported, "unpack"},
		{"nothing", extract.File{Data: nil, MIME: "text/plain"}, extract.Empty, "empty"},
		{"spaces", extract.File{Data: []byte(" \n\t "), MIME: "text/plain"}, extract.Empty, "no text"},
		{"bytes", extract.File{Data: []byte("\x00\x01\x02\x7fELF\x00"), MIME: "application/x-thing"}, extract.Unsupported, "application/x-thing"},
		{"bytes that are said to be a page", extract.File{Data: []byte("\x00\x01\x02\x00\x00"), MIME: "text/html"}, extract.Unsupported, "not text"},
		{"too much", extract.File{Data: make([]byte, extract.MaxFile+1), MIME: "text/plain"}, extract.TooLarge, "at most"},
		{"too much text", extract.File{Data: bytes.Repeat([]byte("word "), extract.MaxText/5+1), MIME: "text/plain"}, extract.TooLarge, "at most"},
	} {
		t.Run(test.name, func(t *testing.T) {
			needsPDFium(t, strings.Contains(strings.ToLower(test.name), "pdf"))
			if raced && strings.Contains(test.name, "inflates") {
				t.Skip("inflating takes a minute under the race detector; make test runs this package without it")
			}
			got, err := x.Extract(t.Context(), test.file, extract.Fallback)
			var refused *extract.Refusal
			if !errors.As(err, &refused) {
				t.Fatalf("%q, %v; want a refusal", got.Text, err)
			}
			if refused.Reason != test.reason || !strings.Contains(refused.Message, test.says) {
				t.Errorf("%s: %s; want %s, saying %q", refused.Reason, refused.Message, test.reason, test.says)
			}
			if plugin.CodeOf(extract.Coded(err)) == plugin.CodeInternal {
				t.Errorf("%v has no code of its own", err)
			}
		})
	}
	if got, err := x.Extract(t.Context(), extract.File{Data: docx()}, extract.Fallback); err != nil || !strings.Contains(got.Text, "quarterly") {
		t.Errorf("the file after all those: %q, %v", got.Text, err)
	}
}

// archiveWith is an archive with a member that is incompressible garbage.
func archiveWith(name string, data []byte) []byte { return archive(name, string(data)) }

// TestWrongTypesAreSeenThrough: what a file is counts for more than what it is
// called.
func TestWrongTypesAreSeenThrough(t *testing.T) {
	needsPDFium(t, true)
	x := open(t, nil)
	for _, test := range []struct {
		file extract.File
		kind string
	}{
		{extract.File{Data: pdf("", "words"), MIME: "text/plain", Name: "a.txt"}, "pdf"},
		{extract.File{Data: docx(), MIME: "application/pdf"}, "docx"},
		{extract.File{Data: []byte("just words"), MIME: "application/octet-stream"}, "text"},
	} {
		got, err := x.Extract(t.Context(), test.file, extract.Fallback)
		if err != nil || got.Kind != test.kind {
			t.Errorf("%s said to be %s is %q, %v", test.kind, test.file.MIME, got.Kind, err)
		}
	}
}

// TestAWorkerThatHangsIsEnded: a program that answers nothing costs its file,
// and its bound.
func TestAWorkerThatHangsIsEnded(t *testing.T) {
	x := open(t, func(o *extract.Options) {
		o.Command, o.Timeout, o.Dir = []string{o.Command[0], hang}, 300*time.Millisecond, ""
	})
	_, err := x.Extract(t.Context(), extract.File{Data: docx()}, extract.Fallback)
	if plugin.CodeOf(extract.Coded(err)) != plugin.CodeTimeout {
		t.Errorf("%v, want code %s", err, plugin.CodeTimeout)
	}
}

// TestMemoryIsBounded: a file that needs more than the worker may have is
// refused, and the next one is read.
func TestMemoryIsBounded(t *testing.T) {
	if raced {
		t.Skip("the race detector takes more memory than the bound leaves")
	}
	x := open(t, func(o *extract.Options) { o.Memory = 96 << 20 })
	page := []byte("<html>" + strings.Repeat("<p>a", 3_000_000))
	_, err := x.Extract(t.Context(), extract.File{Data: page, MIME: "text/html"}, extract.Fallback)
	var refused *extract.Refusal
	if !errors.As(err, &refused) || refused.Code != plugin.CodeLimitExceeded && refused.Code != plugin.CodeCrashed {
		t.Fatalf("a page of 3,000,000 elements in 96 MiB: %v", err)
	}
	t.Log(err) // which of the two depends on who ends it: the cage, or the program itself
	if got, err := x.Extract(t.Context(), extract.File{Data: docx()}, extract.Fallback); err != nil || got.Kind != "docx" {
		t.Errorf("the file after it: %v", err)
	}
}

func TestWhoGivesUpIsNotKept(t *testing.T) {
	x := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Extract(ctx, extract.File{Data: docx()}, extract.Fallback); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	if _, err := x.Extract(t.Context(), extract.File{Data: docx()}, extract.Fallback); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// tesseract is a stand-in that reads its picture and answers as the real one
// does.
func tesseract(t *testing.T) func(*extract.Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tesseract")
	script := "#!/bin/sh\ncat >/dev/null\nprintf 'level\\tpage_num\\n5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t90.0\\tread\\n5\\t1\\t1\\t1\\t1\\t2\\t0\\t0\\t9\\t9\\t70.0\\taloud\\n5\\t1\\t1\\t1\\t2\\t1\\t0\\t0\\t9\\t9\\t80.0\\tagain\\n'\n"
	if err := carried.Write(path, []byte(script)); err != nil {
		t.Fatal(err)
	}
	return func(o *extract.Options) { o.Tesseract = path }
}

const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// TestPagesOfAPDFHaveTheirPlaces: a citation by page stands on where each page begins.
func TestPagesOfAPDFHaveTheirPlaces(t *testing.T) {
	needsPDFium(t, true)
	x := open(t, func(*extract.Options) {})
	got, err := x.Extract(t.Context(), extract.File{Data: pdf("", "the first page", "", "the third", "the last")}, extract.Never)
	if err != nil {
		t.Fatal(err)
	}
	starts, _ := got.Details["page_starts"].([]any)
	text, told := []rune(got.Text), []string{}
	for _, start := range starts {
		if at, ok := start.(float64); ok && int(at) <= len(text) {
			line, _, _ := strings.Cut(string(text[int(at):]), "\n")
			told = append(told, line)
		}
	}
	// A page without text begins where the text before it ends.
	if want := []string{"the first page", "", "the third", "the last"}; !slices.Equal(told, want) {
		t.Errorf("the pages begin with %q in %q", told, got.Text)
	}
}

// TestOCRModes walks mode x file: always forces it, auto takes it for PDF and
// pictures, fallback where no text came, never does not.
func TestOCRModes(t *testing.T) {
	needsPDFium(t, true)
	x := open(t, tesseract(t))
	text, scanned, picture := pdf("", "typed"), pdf("", ""), []byte(pixel)
	for _, test := range []struct {
		mode   extract.Mode
		data   []byte
		method string // "" for a refusal
	}{
		{extract.Always, text, "ocr"}, {extract.Always, scanned, "ocr"}, {extract.Always, picture, "ocr"}, {extract.Always, docx(), "text"},
		{extract.Auto, text, "ocr"}, {extract.Auto, scanned, "ocr"}, {extract.Auto, picture, "ocr"}, {extract.Auto, docx(), "text"},
		{extract.Fallback, text, "pdf_text"}, {extract.Fallback, scanned, "ocr"}, {extract.Fallback, picture, "ocr"}, {extract.Fallback, docx(), "text"},
		{extract.Never, text, "pdf_text"}, {extract.Never, scanned, ""}, {extract.Never, picture, ""}, {extract.Never, docx(), "text"},
	} {
		got, err := x.Extract(t.Context(), extract.File{Data: test.data}, test.mode)
		if got.Method != test.method || (err == nil) != (test.method != "") {
			t.Errorf("%s of %.8q: %q, %v; want %q", test.mode, test.data, got.Method, err, test.method)
		}
		if got.Method == "ocr" && (!strings.HasPrefix(got.Text, "read aloud\nagain") || got.Confidence < 0.79 || got.Confidence > 0.81 || got.Engine != "tesseract") {
			t.Errorf("%s: %q, %f by %s", test.mode, got.Text, got.Confidence, got.Engine)
		}
	}
}

// TestWithoutTesseract: what cannot be done is said, and what can is.
func TestWithoutTesseract(t *testing.T) {
	needsPDFium(t, true)
	x := open(t, nil)
	for _, mode := range []extract.Mode{extract.Always, extract.Auto, extract.Fallback} {
		if _, err := x.Extract(t.Context(), extract.File{Data: []byte(pixel)}, mode); plugin.CodeOf(err) != plugin.CodeDependencyMissing {
			t.Errorf("a picture, %s: %v", mode, err)
		}
	}
	if _, err := x.Extract(t.Context(), extract.File{Data: pdf("", "typed")}, extract.Always); plugin.CodeOf(err) != plugin.CodeDependencyMissing {
		t.Errorf("a PDF, always: %v", err)
	}
	got, err := x.Extract(t.Context(), extract.File{Data: pdf("", "typed")}, extract.Auto)
	if err != nil || got.Method != "pdf_text" || got.Details["ocr"] != "unavailable" {
		t.Errorf("a PDF, auto: %+v, %v", got, err)
	}
}

// TestRealTesseract reads a page that was drawn from a PDF.
func TestRealTesseract(t *testing.T) {
	needsPDFium(t, true)
	if _, err := exec.LookPath("tesseract"); err != nil {
		t.Skip("tesseract is not installed: apt-get install tesseract-ocr")
	}
	x := open(t, func(o *extract.Options) { o.Tesseract = "" })
	got, err := x.Extract(t.Context(), extract.File{Data: pdf("", "Printed words")}, extract.Always)
	if err != nil || !strings.Contains(got.Text, "Printed") {
		t.Errorf("%+v, %v", got, err)
	}
}
