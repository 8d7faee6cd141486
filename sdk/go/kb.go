package mortise

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A File is a file in an argument: its bytes, or the path of a file in
// [Call.Scratch]. Exactly one of the two is set.
type File struct {
	Bytes []byte `json:"$bytes,omitzero"`
	Path  string `json:"$file,omitempty"`
}

// A KBTarget is where a source goes, which all that is ingested has.
type KBTarget struct {
	// KB is the id of the knowledge base; where it is empty, the first that the call was given.
	KB string `json:"kb_id,omitempty"`
	// SourceURL is where a person finds the source.
	SourceURL string `json:"source_url,omitempty"`
	// Attributes, at most 64 KiB of JSON, are kept. source_hash tells whether the
	// source has changed, force_reingest takes it in again all the same.
	Attributes map[string]any `json:"attributes,omitempty"`
}

// A KBDocumentSource is a file to ingest, of at most 64 MiB.
type KBDocumentSource struct {
	KBTarget
	File     File   `json:"file"`
	Filename string `json:"filename,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
	SourceID string `json:"source_id"` // by which it is known: 1 to 1,024 bytes
}

// A KBEmailSource is a mail to ingest. It is known by attributes.external_id, or
// else by MessageID.
type KBEmailSource struct {
	KBTarget
	Subject    string       `json:"subject,omitempty"`
	Sender     string       `json:"sender,omitempty"`
	Recipients KBRecipients `json:"recipients,omitzero"`
	Date       string       `json:"date,omitempty"` // as the mail spells it
	MessageID  string       `json:"message_id,omitempty"`
	ThreadID   string       `json:"thread_id,omitempty"`
	BodyText   string       `json:"body_text,omitempty"`
	BodyHTML   string       `json:"body_html,omitempty"`
	Labels     []string     `json:"labels,omitempty"`
}

// KBRecipients are whom a mail goes to.
type KBRecipients struct {
	To  []string `json:"to,omitempty"`
	Cc  []string `json:"cc,omitempty"`
	Bcc []string `json:"bcc,omitempty"`
}

// A KBThreadSource is a conversation to ingest.
type KBThreadSource struct {
	KBTarget
	Title    string `json:"title,omitempty"`
	Content  string `json:"content"`
	ThreadID string `json:"thread_id"` // by which it is known
}

// A KBTextSource is a text to ingest.
type KBTextSource struct {
	KBTarget
	Title    string `json:"title,omitempty"`
	Content  string `json:"content"`
	SourceID string `json:"source_id"` // by which it is known
}

// A KnowledgeObject is a thing of another system. Where Content is empty, the
// object's JSON is what is found.
type KnowledgeObject struct {
	ExternalID string         `json:"external_id"` // by which it is known
	Source     any            `json:"source"`      // where it is from: a text or an object
	Title      string         `json:"title,omitempty"`
	Content    string         `json:"content,omitempty"`
	SourceURL  string         `json:"source_url,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// A KBIngested is what became of a source.
type KBIngested struct {
	ObjectID         string         `json:"ko_id"`
	DocumentID       string         `json:"document_id"`
	Words            int64          `json:"word_count"`
	Characters       int64          `json:"character_count"`
	Chunks           int64          `json:"chunk_count"`
	Extraction       TextExtraction `json:"extraction"`
	Created          bool           `json:"created"`           // there was no document of the source before
	Skipped          bool           `json:"skipped"`           // nothing was done, for SkipReason
	SkipReason       string         `json:"skip_reason"`       // such as hash_match
	EmbeddingPending bool           `json:"embedding_pending"` // the model of embeddings could not be asked
}

// A TextExtraction is how the text of a file was obtained.
type TextExtraction struct {
	Method     string         `json:"method"`
	Engine     string         `json:"engine"`
	Confidence float64        `json:"confidence"`
	Seconds    float64        `json:"duration"`
	Details    map[string]any `json:"details"`
}

func (c *Call) ingest(method string, source any) (done KBIngested, err error) {
	err = c.Service(method, source, &done)
	return done, err
}

// KBIngestDocument puts a file into a knowledge base. As all that writes there,
// it is for an operator with the effect kb_write; a knowledge base that the call
// was not given is service_denied. A source that has not changed is skipped.
func (c *Call) KBIngestDocument(source KBDocumentSource) (KBIngested, error) {
	return c.ingest("kb.ingest_document", source)
}

// KBIngestEmail puts a mail into a knowledge base; see [Call.KBIngestDocument].
func (c *Call) KBIngestEmail(source KBEmailSource) (KBIngested, error) {
	return c.ingest("kb.ingest_email", source)
}

// KBIngestThread puts a conversation into a knowledge base; see [Call.KBIngestDocument].
func (c *Call) KBIngestThread(source KBThreadSource) (KBIngested, error) {
	return c.ingest("kb.ingest_thread", source)
}

// KBIngestText puts a text into a knowledge base; see [Call.KBIngestDocument].
func (c *Call) KBIngestText(source KBTextSource) (KBIngested, error) {
	return c.ingest("kb.ingest_text", source)
}

// KBUpsertKnowledgeObject puts a thing of another system into a knowledge base,
// in the place of what was there under its external id; kb may be empty. See
// [Call.KBIngestDocument]. Without a source or an external id it is invalid_input.
func (c *Call) KBUpsertKnowledgeObject(kb string, object KnowledgeObject) (KBIngested, error) {
	return c.ingest("kb.upsert_knowledge_object", struct {
		KB     string          `json:"kb_id,omitempty"`
		Object KnowledgeObject `json:"ko"`
	}{kb, object})
}

// A KBDeletion is what [Call.KBDelete] has deleted.
type KBDeletion struct {
	Deleted    bool   `json:"deleted"`
	DocumentID string `json:"ko_id"`       // empty where nothing was deleted
	Chunks     int64  `json:"chunk_count"` // how many passages it had
}

// KBDelete deletes what the plugin has put into a knowledge base for the same
// user; kb may be empty. The operation is an operator with the effect kb_write,
// and the call one of a feed (else service_denied).
func (c *Call) KBDelete(kb, externalID string) (gone KBDeletion, err error) {
	err = c.Service("kb.delete", struct {
		KB       string `json:"kb_id,omitempty"`
		External string `json:"external_id"`
	}{kb, externalID}, &gone)
	return gone, err
}

// A KBQuery is a search for passages.
type KBQuery struct {
	KBs   []string `json:"kb_ids,omitempty"` // all that the call may read, where it is empty
	Query string   `json:"query"`            // 1 to 4,096 bytes
	Limit int      `json:"limit,omitzero"`   // at most 100; 10 where it is 0
}

// A KBHit is a passage that was found.
type KBHit struct {
	KB         string   `json:"kb_id"`
	DocumentID string   `json:"document_id"`
	ObjectID   string   `json:"ko_id"`
	SourceID   string   `json:"source_id"`
	SourceType string   `json:"source_type"`
	Title      string   `json:"title"`
	SourceURL  string   `json:"source_url"`
	Chunk      int64    `json:"chunk_index"`
	Start      int64    `json:"start"` // in the document's text, in characters
	Content    string   `json:"content"`
	Score      float64  `json:"score"` // the more the better, within one answer
	Labels     []string `json:"labels"`
}

func (c *Call) search(method string, query KBQuery) ([]KBHit, error) {
	var answer struct {
		Results []KBHit `json:"results"`
	}
	err := c.Service(method, query, &answer)
	return answer.Results, err
}

// KBSearchChunks returns the passages that fit a query, the best first.
func (c *Call) KBSearchChunks(query KBQuery) ([]KBHit, error) {
	return c.search("kb.search_chunks", query)
}

// KBSearchDocuments returns the best passage of each document that fits a query,
// the best first.
func (c *Call) KBSearchDocuments(query KBQuery) ([]KBHit, error) {
	return c.search("kb.search_documents", query)
}

// A KBDocument is a document of a knowledge base.
type KBDocument struct {
	KB         string         `json:"kb_id"`
	ID         string         `json:"document_id"`
	ObjectID   string         `json:"ko_id"`
	SourceID   string         `json:"source_id"`
	SourceType string         `json:"source_type"`
	Title      string         `json:"title"`
	Filename   string         `json:"filename"`
	MIMEType   string         `json:"mime_type"`
	SourceURL  string         `json:"source_url"`
	Hash       string         `json:"content_hash"`
	Words      int64          `json:"word_count"`
	Characters int64          `json:"character_count"`
	Chunks     int64          `json:"chunk_count"`
	Extraction jsontext.Value `json:"extraction"`
	Attributes jsontext.Value `json:"attributes"`
	Labels     []string       `json:"labels"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Content    string         `json:"content"` // empty in lists
}

func (c *Call) document(method, kb, id string) (document KBDocument, err error) {
	err = c.Service(method, struct {
		KB string `json:"kb_id,omitempty"`
		ID string `json:"document_id"`
	}{kb, id}, &document)
	return document, err
}

// KBGetDocument returns a document with its text, by its id or its source's;
// kb may be empty. It fails with not_found where there is none.
func (c *Call) KBGetDocument(kb, id string) (KBDocument, error) {
	return c.document("kb.get_document", kb, id)
}

// QueryGet is [Call.KBGetDocument] for a plugin with the capability "query".
func (c *Call) QueryGet(kb, id string) (KBDocument, error) {
	return c.document("query.get", kb, id)
}

// A QueryListing says which documents to list.
type QueryListing struct {
	KB         string `json:"kb_id,omitempty"` // the first that the call was given, where it is empty
	SourceType string `json:"source_type,omitempty"`
	After      string `json:"after,omitempty"` // the id of the last document of the page before
	Limit      int    `json:"limit,omitzero"`  // at most 1,000; 100 where it is 0
}

// QueryList returns documents of a knowledge base, by id and without their text.
func (c *Call) QueryList(listing QueryListing) ([]KBDocument, error) {
	var answer struct {
		Documents []KBDocument `json:"documents"`
	}
	err := c.Service("query.list", listing, &answer)
	return answer.Documents, err
}

// An OCRFile is a file whose text is wanted.
type OCRFile struct {
	File     File   `json:"file"` // at most 64 MiB
	Filename string `json:"filename,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
	Mode     string `json:"mode,omitempty"` // auto where it is empty
}

// An OCRText is the text of a file, and how it was obtained.
type OCRText struct {
	Text     string         `json:"text"`
	Metadata TextExtraction `json:"metadata"`
}

// OCRExtractText returns the text of a file. It fails with invalid_input where
// there is none in it, and with dependency_missing for a picture on a host
// without tesseract.
func (c *Call) OCRExtractText(file OCRFile) (text OCRText, err error) {
	err = c.Service("ocr.extract_text", file, &text)
	return text, err
}
