package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AuditRecords returns the records of a request in the audit log: JSON, one a line, of which one
// says that the response is complete. Without a log (CONFORMANCE_AUDIT) the check is skipped.
func (t *T) AuditRecords(r *Resp) (records []Obj) {
	id := r.Header.Get("Audit-Id")
	t.True(id != "", "a header Audit-Id, by which the request is found in the audit log")
	t.Until(10*time.Second, "a record of the request with the stage ResponseComplete in the audit log", func() bool {
		records = nil
		complete := false
		for _, line := range bytes.Split(t.AuditLog(), []byte("\n")) {
			record := Obj{}
			if json.Unmarshal(line, &record) != nil || record.Str("auditID") != id {
				continue
			}
			records = append(records, record)
			complete = complete || record.Str("stage") == "ResponseComplete"
		}
		return complete
	})
	return records
}

// AuditLog returns the whole audit log.
func (t *T) AuditLog() []byte {
	file := os.Getenv("CONFORMANCE_AUDIT")
	if file == "" {
		t.Skipf("CONFORMANCE_AUDIT names no audit log")
	}
	log, err := os.ReadFile(strings.ReplaceAll(file, "{dir}", filepath.Join(t.dir, "data")))
	if err != nil {
		t.Failf("%v", err)
	}
	return log
}
