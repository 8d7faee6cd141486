//go:build !race

package extract_test

const raced = false
