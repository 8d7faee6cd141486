//go:build gcs

package blob

import _ "gocloud.dev/blob/gcsblob" // gs://

// withGCS reports whether gs:// can be opened.
const withGCS = true
