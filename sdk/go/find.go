package mortise

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A KBCondition is what is found by one field; docs/services.md has the fields
// with their operators.
type KBCondition struct {
	Field     string `json:"field"`
	Operator  string `json:"operator"`
	Value     any    `json:"value"`
	Page      int    `json:"page,omitzero"`        // from 1; the first where it is 0
	SortOrder string `json:"sort_order,omitempty"` // asc or desc; asc where it is empty
}

// A KBPage is a page of what was found, 20 at most, in the order of the field.
type KBPage[T any] struct {
	Results []T `json:"results"`
	Total   int `json:"total_results"` // on all pages
	Page    int `json:"page"`
	Size    int `json:"page_size"`
}

// A KBChunkFound is a passage that [Call.KBFindChunks] finds.
type KBChunkFound struct {
	DocumentID string         `json:"document_id"`
	KBName     string         `json:"knowledge_base_name"`
	Chunk      int64          `json:"chunk_index"`
	Summary    string         `json:"summary"` // empty where the document has none
	Topics     jsontext.Value `json:"topics"`
	Words      int            `json:"word_count"`
	CreatedAt  time.Time      `json:"created_at"`
}

// A KBDocumentFound is a document that [Call.KBFindDocuments] finds. What its
// attributes do not say is empty or null.
type KBDocumentFound struct {
	ID                 string         `json:"id"`
	KBName             string         `json:"knowledge_base_name"`
	Title              string         `json:"title"`
	SourceURL          string         `json:"source_url"`
	ModifiedAt         string         `json:"source_modified_at"`
	Synopsis           string         `json:"synopsis"`
	Type               string         `json:"document_type"`
	CapabilityManifest jsontext.Value `json:"capability_manifest"`
	RelationalContext  jsontext.Value `json:"relational_context"`
	Words              int64          `json:"word_count"`
	CreatedAt          time.Time      `json:"created_at"`
	Content            string         `json:"content"` // of [Call.KBFindDocument] alone
}

// A KBSearchError is a search by field that could not be made: the code is
// no_knowledge_bases, access_denied, invalid_field, invalid_operator,
// invalid_value or, of [Call.KBFindDocument], not_found.
type KBSearchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the code and the message.
func (e *KBSearchError) Error() string { return e.Code + ": " + e.Message }

// find asks for what is found by a field. The host answers a search that cannot
// be made with a value, which is an error here.
func (c *Call) find(method string, args, found any) error {
	var answer jsontext.Value
	if err := c.Service(method, args, &answer); err != nil {
		return err
	}
	var failed struct {
		Status string         `json:"status"`
		Error  *KBSearchError `json:"error"`
	}
	if err := json.Unmarshal(answer, &failed); err != nil {
		return err
	}
	if failed.Status == "error" && failed.Error != nil {
		return failed.Error
	}
	return decode(answer, found)
}

// KBFindChunks finds passages of the knowledge bases that the call is bound to,
// by one field. A search that cannot be made is a [*KBSearchError].
func (c *Call) KBFindChunks(condition KBCondition) (page KBPage[KBChunkFound], err error) {
	err = c.find("kb.find_chunks", condition, &page)
	return page, err
}

// KBFindDocuments finds documents of the knowledge bases that the call is bound
// to, by one field. A search that cannot be made is a [*KBSearchError].
func (c *Call) KBFindDocuments(condition KBCondition) (page KBPage[KBDocumentFound], err error) {
	err = c.find("kb.find_documents", condition, &page)
	return page, err
}

// KBFindDocument returns a document of the knowledge bases that the call is
// bound to, with its content. One that is not there is a [*KBSearchError].
func (c *Call) KBFindDocument(id string) (document KBDocumentFound, err error) {
	err = c.find("kb.find_document", struct {
		ID string `json:"document_id"`
	}{id}, &document)
	return document, err
}
