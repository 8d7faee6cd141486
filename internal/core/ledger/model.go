package ledger

import (
	"cmp"
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// RecordModel adds an entry about a query to a language model, with what was
// asked and answered where that is to be kept: as long as answers of calls are.
// It returns once the entry is on the disk, because what it tells of has gone
// outside and was paid for.
func (l *Ledger) RecordModel(ctx context.Context, tenant, principal string, rec *plugin.ModelRecord, at time.Time, bodies ...[]byte) error {
	body, err := json.Marshal(rec, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	e := plugin.Entry{
		At: at.Truncate(time.Microsecond).UTC(), Tenant: clean(tenant), Kind: plugin.EntryModelCalled,
		Subject: clean(cmp.Or(rec.CallID, "model:"+rec.Model)), Principal: clean(principal), Body: body,
	}
	var expires time.Time
	if l.opts.Keep > 0 {
		expires = e.At.Add(l.opts.Keep)
	}
	return lapsing(func() error {
		return l.st.Write(ctx, func(tx Tx) error {
			for _, data := range bodies {
				hash, err := tx.PutBody(e.Tenant, data, expires)
				if err != nil {
					return err
				}
				if err := tx.NameBody(entryBodyRow{Tenant: e.Tenant, Hash: hash, Subject: e.Subject, Principal: e.Principal, ExpiresAt: expires}); err != nil {
					return err
				}
			}
			tx.Append(e)
			return nil
		})
	})
}
