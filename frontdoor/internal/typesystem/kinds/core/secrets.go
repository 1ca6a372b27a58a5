package core

import (
	"crypto/tls"
	"encoding/base64"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// dataFromText moves stringData, which is write-only, into data. If a value is not a
// string, it changes nothing, and validation rejects the object.
func dataFromText(m map[string]any, _ vocabulary.Vocabulary) {
	plain := rules.Object(m, "stringData")
	data := map[string]any{}
	for key, value := range plain {
		text, ok := value.(string)
		if !ok && value != nil { // null counts as empty here
			return
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if _, given := m["stringData"]; !given || plain == nil && m["stringData"] != nil {
		return
	}
	delete(m, "stringData")
	if len(data) == 0 {
		return
	}
	rules.Complete(m, map[string]any{"data": map[string]any{}})
	if into := rules.Object(m, "data"); into != nil {
		for key, value := range data {
			into[key] = value
		}
	}
}

// certificateFitsKey warns of a Secret for TLS that servers cannot use.
func certificateFitsKey(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if rules.Text(m, "type") != c.Vocabulary.Qualified("", "tls") {
		return
	}
	data := rules.Object(m, "data")
	certificate, errCertificate := base64.StdEncoding.DecodeString(rules.Text(data, "tls.crt"))
	key, errKey := base64.StdEncoding.DecodeString(rules.Text(data, "tls.key"))
	if errCertificate != nil || errKey != nil {
		return // refused
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		c.Warn(err.Error())
	}
}
