package host

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/service/report"
)

// What an investigation found, as it is cited.
type (
	SessionReport = report.Report
	ReportSource  = report.Source
	ReportCheck   = report.Check
)

// MaxReport is how many bytes a report that is verified may have, and ReportEntries how many
// of the newest entries about calls are looked through for those of its session.
const (
	MaxReport     = report.MaxBytes
	ReportEntries = report.MaxEntries
)

// ReportFormats are those in which a report is written.
var ReportFormats = report.Formats

// ReportOf makes the report of a session, at a time, for a principal.
func ReportOf(ctx context.Context, s ReportSource, version string, at time.Time, by string) (SessionReport, error) {
	return report.Of(ctx, s, version, at, by)
}

// ReadReport returns the report that a file has.
func ReadReport(file []byte) (SessionReport, error) { return report.Read(file) }

// VerifyReport holds the report of a file against the artifacts and the ledger that it cites.
func VerifyReport(ctx context.Context, s ReportSource, file []byte) (ReportCheck, error) {
	return report.Verify(ctx, s, file)
}
