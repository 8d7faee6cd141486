package mortise

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// lookedUp is the answer of a service that may find nothing.
type lookedUp struct {
	Found bool           `json:"found"`
	Value jsontext.Value `json:"value"`
}

// lookUp asks a service for a value and decodes what it found into value.
func (c *Call) lookUp(method string, args, value any) (found bool, err error) {
	var answer lookedUp
	if err := c.Service(method, args, &answer); err != nil || !answer.Found {
		return false, err
	}
	if value == nil {
		return true, nil
	}
	return true, decode(answer.Value, value)
}

// remove asks a service to delete something, and reports whether it was there.
func (c *Call) remove(method string, args any) (deleted bool, err error) {
	var answer struct {
		Deleted bool `json:"deleted"`
	}
	err = c.Service(method, args, &answer)
	return answer.Deleted, err
}

// The arguments of services that keep values. Members that are empty are left out.
type (
	keyed struct {
		Namespace string `json:"namespace,omitempty"`
		Key       string `json:"key"`
	}
	keptValue struct {
		Namespace string `json:"namespace,omitempty"`
		Key       string `json:"key"`
		Value     any    `json:"value"`
	}
	cachedValue struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
		TTL   int64  `json:"ttl_seconds"`
	}
	ofBase struct {
		KB string `json:"kb_id"`
	}
	cursorValue struct {
		KB    string `json:"kb_id"`
		Value any    `json:"value"`
	}
)

// CacheGet reads a value that a call of the plugin has cached for the same
// tenant, and decodes it into value, which may be nil. The key has 1 to 512
// bytes. found is false, and value as it was, where there is none or its time is over.
func (c *Call) CacheGet(key string, value any) (found bool, err error) {
	return c.lookUp("cache.get", keyed{Key: key}, value)
}

// CacheSet caches a value, at most 1 MiB of JSON, for all calls of the plugin
// for the tenant. ttl counts in whole seconds, at least one and at most a day; 0
// is five minutes. The value may go earlier, to make room.
func (c *Call) CacheSet(key string, value any, ttl time.Duration) error {
	if ttl <= 0 {
		ttl = 5 * time.Minute
	}
	return c.Service("cache.set", cachedValue{key, value, int64(ttl.Seconds())}, nil)
}

// CacheDelete removes a value from the cache, where there is one.
func (c *Call) CacheDelete(key string) error {
	return c.Service("cache.delete", keyed{Key: key}, nil)
}

// StorageGet reads a value that the plugin keeps for the call's principal, and
// decodes it into value, which may be nil. The namespace, at most 200 bytes, may
// be empty; the key has 1 to 512 bytes. found is false, and value as it was,
// where there is none.
func (c *Call) StorageGet(namespace, key string, value any) (found bool, err error) {
	return c.lookUp("storage.get", keyed{namespace, key}, value)
}

// StoragePut keeps a value, at most 64 KiB of JSON, for the call's principal.
// The operation is an operator with the effect storage_write.
func (c *Call) StoragePut(namespace, key string, value any) error {
	return c.Service("storage.put", keptValue{namespace, key, value}, nil)
}

// StorageDelete deletes a value and reports whether there was one. The operation
// is an operator with the effect storage_write.
func (c *Call) StorageDelete(namespace, key string) (deleted bool, err error) {
	return c.remove("storage.delete", keyed{namespace, key})
}

// CursorGet reads how far the plugin has read a source into the knowledge base
// kb, and decodes it into value, which may be nil. found is false, and value as
// it was, where nothing is kept.
func (c *Call) CursorGet(kb string, value any) (found bool, err error) {
	return c.lookUp("cursor.get", ofBase{kb}, value)
}

// CursorSet keeps how far the plugin has read, at most 64 KiB of JSON. The
// operation is an operator with the effect cursor_write.
func (c *Call) CursorSet(kb string, value any) error {
	return c.Service("cursor.set", cursorValue{kb, value}, nil)
}

// CursorDelete forgets how far the plugin has read, and reports whether anything
// was kept. The operation is an operator with the effect cursor_write.
func (c *Call) CursorDelete(kb string) (deleted bool, err error) {
	return c.remove("cursor.delete", ofBase{kb})
}

// ReferenceDataGet reads a value that the host's owner keeps for all plugins,
// such as "mitre_techniques", and decodes it into value, which may be nil: JSON
// as it is, a text as a string. The key has 1 to 200 bytes. found is false, and
// value as it was, where there is none.
func (c *Call) ReferenceDataGet(key string, value any) (found bool, err error) {
	return c.lookUp("reference_data.get", keyed{Key: key}, value)
}

// RateLimitTake takes cost tokens, 0 to 60, out of one of the plugin's buckets
// for the tenant. A bucket, named by 1 to 200 bytes, holds 60 and gets one back a
// second. Where that many are not there nothing is taken: allowed is false, and
// wait says how long it takes until they are.
func (c *Call) RateLimitTake(bucket string, cost float64) (allowed bool, wait time.Duration, err error) {
	var answer struct {
		Allowed      bool  `json:"allowed"`
		RetryAfterMS int64 `json:"retry_after_ms"`
	}
	err = c.Service("rate_limit.take", struct {
		Bucket string  `json:"bucket"`
		Cost   float64 `json:"cost"`
	}{bucket, cost}, &answer)
	return answer.Allowed, time.Duration(answer.RetryAfterMS) * time.Millisecond, err
}

// AuditLog puts an entry plugin.audit into the ledger, as something that the
// plugin says. The event has 1 to 200 printable bytes; details, any JSON of at
// most 16 KiB, may be nil. One call has 64 of them (limit_exceeded).
func (c *Call) AuditLog(event string, details any) error {
	return c.Service("audit.log", struct {
		Event   string `json:"event"`
		Details any    `json:"details,omitzero"`
	}{event, details}, nil)
}

// SchedulerEnqueue has an operation run at a time, at most a year away, or as
// soon as a host serves where at is zero. It returns the id of that call. The
// operation is the plugin's own or declared under requires.tools, and params is
// its input, nil for an empty object. The operation that asks is an operator with
// the effect schedule_write.
func (c *Call) SchedulerEnqueue(operation string, params any, at time.Time) (id string, err error) {
	var answer struct {
		ID string `json:"id"`
	}
	args := struct {
		Operation string `json:"operation"`
		Params    any    `json:"params,omitzero"`
		RunAt     string `json:"run_at,omitempty"`
	}{Operation: operation, Params: params}
	if !at.IsZero() {
		args.RunAt = at.UTC().Format(time.RFC3339)
	}
	err = c.Service("scheduler.enqueue", args, &answer)
	return answer.ID, err
}
