package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// sumsName is the file that sha256sum --check reads.
const sumsName = "SHA256SUMS"

func sumOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}

// sumsFile returns the sums by the names of their files, in order.
func sumsFile(sums map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "%x  %s\n", sums[name], name)
	}
	return b.Bytes()
}
