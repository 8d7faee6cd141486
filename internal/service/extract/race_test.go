//go:build race

package extract_test

// raced says that the race detector watches: compiling PDFium takes minutes then.
const raced = true
