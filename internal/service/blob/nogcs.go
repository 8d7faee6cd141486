//go:build !gcs

package blob

// withGCS reports whether gs:// can be opened. Its client brings gRPC and half of
// a cloud with it, so that it is in builds with the tag gcs only.
const withGCS = false
