package schema

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// recursive returns the schema that $recursiveRef means: the outermost that led here, of those
// that say $recursiveAnchor.
func (e *evaluation) recursive(f *frame) *jsonschema.Schema {
	s := f.schema.RecursiveRef
	if s == nil || !s.RecursiveAnchor {
		return s
	}
	for at := f; at != nil && e.work.Take(1); at = at.above {
		if resourceOf(at.schema).RecursiveAnchor {
			s = at.schema
		}
	}
	return s
}

// dynamicRef returns the schema that $dynamicRef means: that of the outermost resource that led
// here and has the anchor.
func (e *evaluation) dynamicRef(f *frame) *jsonschema.Schema {
	ref := f.schema.DynamicRef
	if ref == nil {
		return nil
	}
	s := ref.Ref
	if ref.Anchor == "" || s.DynamicAnchor != ref.Anchor {
		return s
	}
	for at := f; at != nil && e.work.Take(1); at = at.above {
		asked := anchor{at.schema, ref.Anchor}
		found, known := e.anchors[asked]
		if !known {
			found = dynamicAnchor(resourceOf(at.schema), ref.Anchor)
			e.anchors[asked] = found
		}
		if found != nil {
			s = found
		}
	}
	return s
}

// An anchor is the name of a dynamic anchor, sought in the resource of a schema.
type anchor struct {
	schema *jsonschema.Schema
	name   string
}

// The library compiles which resource a schema belongs to and the dynamic anchors of a
// resource, and keeps both in fields that it does not export. They cannot be had otherwise.
const (
	fieldResource = "resource"
	fieldAnchors  = "dynamicAnchors"
)

func resourceOf(s *jsonschema.Schema) *jsonschema.Schema {
	return (*jsonschema.Schema)(reflect.ValueOf(s).Elem().FieldByName(fieldResource).UnsafePointer())
}

func dynamicAnchor(resource *jsonschema.Schema, name string) *jsonschema.Schema {
	found := reflect.ValueOf(resource).Elem().FieldByName(fieldAnchors).MapIndex(reflect.ValueOf(name))
	if !found.IsValid() {
		return nil
	}
	return (*jsonschema.Schema)(found.UnsafePointer())
}
