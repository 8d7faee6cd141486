package rest

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// A reply is the answer of each route as huma has it. huma compiles its code for each pair
// of types that it is given; with one type of answers for all routes that is a third less.
type reply struct {
	Status int
	Body   any
}

// An answerType is the type that a route answers with: a struct with the field Body, and those
// of Status and of headers, all of them strings.
type answerType struct {
	status  []int // the index of the field; nil where the status is always 200
	body    []int
	headers []answerHeader
}

type answerHeader struct {
	name  string
	field []int
}

// describe puts the headers and the body of answers into the document.
func describe(schemas huma.Registry, op *huma.Operation, t reflect.Type) answerType {
	var a answerType
	ok := op.Responses["200"]
	ok.Headers = map[string]*huma.Param{}
	for _, f := range reflect.VisibleFields(t) {
		header := f.Tag.Get("header")
		switch {
		case f.Anonymous:
		case f.Name == "Status":
			a.status = f.Index
		case f.Name == "Body":
			a.body = f.Index
			name := op.OperationID + "Response" // of the schema, where its type has none
			if hint := f.Tag.Get("nameHint"); hint != "" {
				name = hint
			}
			schema := huma.SchemaFromField(schemas, f, name)
			if ok.Content == nil {
				ok.Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
			}
		case header == "" || f.Type.Kind() != reflect.String:
			panic("the field " + f.Name + " of what " + op.OperationID + " answers is no header of text")
		default:
			a.headers = append(a.headers, answerHeader{header, f.Index})
			if f.Tag.Get("hidden") == "" {
				ok.Headers[header] = &huma.Header{Schema: huma.SchemaFromField(schemas, f, "")}
			}
		}
	}
	if a.body == nil {
		panic(op.OperationID + " answers without a body")
	}
	return a
}

// reply sets the headers of an answer, and returns the rest of it.
func (a *answerType) reply(q *request, out reflect.Value) *reply {
	for _, h := range a.headers {
		if value := out.FieldByIndex(h.field).String(); value != "" {
			q.answer.Set(h.name, value)
		}
	}
	status := http.StatusOK
	if a.status != nil {
		status = int(out.FieldByIndex(a.status).Int())
	}
	return &reply{status, out.FieldByIndex(a.body).Interface()}
}
