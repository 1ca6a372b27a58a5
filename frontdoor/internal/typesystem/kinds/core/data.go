package core

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// maxData limits the data of a ConfigMap or Secret, in bytes.
const maxData = 1 << 20

func keysInOnePlace(c *rules.Check, m, _ map[string]any, at *field.Path) {
	data := rules.Object(m, "data")
	for key := range rules.Object(m, "binaryData") {
		if _, twice := data[key]; twice {
			c.Invalid(at.Field("data").Entry(key), key, "duplicate of key present in binaryData")
		}
	}
}

// dataSize checks the size of the decoded data: that of Secrets and binaryData is base64.
func dataSize(c *rules.Check, m, _ map[string]any, at *field.Path) {
	size, secret := 0, m["type"] != nil
	for _, name := range [...]string{"data", "binaryData"} {
		for _, value := range rules.Object(m, name) {
			s, _ := value.(string)
			if secret || name == "binaryData" {
				size += base64.StdEncoding.DecodedLen(len(s)) - strings.Count(s[max(0, len(s)-2):], "=")
			} else {
				size += len(s)
			}
		}
	}
	if size > maxData {
		where := at.Entry("") // the error is about all data
		if secret {
			where = at.Field("data")
		}
		c.TooLong(where, maxData)
	}
}

// immutableData checks that an immutable object keeps its data and the field immutable.
func immutableData(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old["immutable"] != true {
		return
	}
	for _, name := range [...]string{"immutable", "data", "binaryData"} {
		if !rules.SameField(m, old, name) {
			c.Forbidden(at.Field(name), "field is immutable when `immutable` is set")
		}
	}
}

// secretKeys checks the keys that some types of Secrets require.
func secretKeys(c *rules.Check, m, _ map[string]any, at *field.Path) {
	data, where := rules.Object(m, "data"), at.Field("data")
	need := func(keys ...string) {
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				c.Required(where.Entry(key), "")
			}
		}
	}
	switch q := c.Vocabulary.Qualified; rules.Text(m, "type") {
	case q("", "tls"):
		need("tls.crt", "tls.key")
	case q("", "dockercfg"):
		need(".dockercfg")
		isJSON(c, data, ".dockercfg", where)
	case q("", "dockerconfigjson"):
		need(".dockerconfigjson")
		isJSON(c, data, ".dockerconfigjson", where)
	case q("", "ssh-auth"):
		if rules.Text(data, "ssh-privatekey") == "" {
			c.Required(where.Entry("ssh-privatekey"), "")
		}
	case q("", "basic-auth"):
		if data["username"] == nil && data["password"] == nil {
			need("username", "password")
		}
	case q("", "service-account-token"):
		name := q("", "service-account.name")
		if rules.Text(rules.Object(m, "metadata", "annotations"), name) == "" {
			c.Required(at.Field("metadata").Field("annotations").Entry(name), "")
		}
	}
}

// isJSON checks that a value of a Secret is a JSON object. Messages do not contain the
// value.
func isJSON(c *rules.Check, data map[string]any, key string, at *field.Path) {
	text, ok := data[key].(string)
	content, err := base64.StdEncoding.DecodeString(text)
	if !ok {
		return
	}
	if err == nil {
		err = json.Unmarshal(content, &map[string]any{})
	}
	if err != nil {
		c.Invalid(at.Entry(key), "<secret contents redacted>", err.Error())
	}
}
