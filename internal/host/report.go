package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/service/report"
	"github.com/mortise-dev/mortise/plugin"
)

// What an investigation found, as it is cited.
type (
	SessionReport = report.Report
	ReportSource  = report.Source
	ReportCheck   = report.Check
)

// MaxReport is how many bytes a report that is verified may have.
const MaxReport = report.MaxBytes

// ReportFormats are those in which a report is written.
var ReportFormats = report.Formats

// ReportOf makes the report of a session as it is now.
func ReportOf(ctx context.Context, s ReportSource) (SessionReport, error) { return report.Of(ctx, s) }

// NewestCalls returns what a report asks for the newest entries about calls, by a list of entries.
func NewestCalls(list func(ctx context.Context, q EntryQuery) ([]plugin.Entry, int, error)) func(context.Context, report.Entry) ([]plugin.Entry, error) {
	return func(ctx context.Context, until report.Entry) ([]plugin.Entry, error) {
		entries, _, err := list(ctx, EntryQuery{Kind: "call.", Chain: until.Chain, Until: until.Seq, Limit: report.MaxEntries})
		return entries, err
	}
}

// ReadReport returns the report that a file has.
func ReadReport(file []byte) (SessionReport, error) { return report.Read(file) }

// VerifyReport works the report of a file out again, from the artifacts and the ledger.
func VerifyReport(ctx context.Context, s ReportSource, file []byte) (ReportCheck, error) {
	return report.Verify(ctx, s, file)
}
