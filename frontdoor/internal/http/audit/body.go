package audit

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// MaxBody is the size of the largest logged body, in bytes. Larger ones are left out.
const MaxBody = 256 << 10

// Bodies are those of a request and its response, as far as its rule requires them.
type Bodies struct {
	Request, Response json.RawMessage
	// Truncated is true if a body was left out, because it is too large or not readable.
	Truncated bool
}

// Add returns the JSON object to log for a body. convert returns the body as JSON.
func (b *Bodies) Add(rule *Rule, body []byte, convert func([]byte) ([]byte, error)) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if len(body) > MaxBody {
		b.Truncated = true
		return nil
	}
	text, err := convert(body)
	if err == nil && rule.config.OmitManagedFields {
		text, err = withoutManagedFields(text)
	}
	if err != nil || len(text) > MaxBody || !json.Valid(text) {
		b.Truncated = true
		return nil
	}
	return text
}

// withoutManagedFields removes metadata.managedFields of an object, or of each item of a
// list. Other values, such as a JSON patch, are unchanged.
func withoutManagedFields(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // integers keep their digits
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return text, nil
	}
	dropManagedFields(object)
	items, _ := object["items"].([]any)
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			dropManagedFields(item)
		}
	}
	return json.Marshal(object)
}

func dropManagedFields(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
}

// Capture is a ResponseWriter that keeps the body of a response, up to MaxBody and one
// byte more.
type Capture struct {
	http.ResponseWriter
	body []byte
}

// Body returns the body so far. It is longer than MaxBody if some of it was dropped.
func (c *Capture) Body() []byte { return c.body }

// WriteHeader begins the response again: an error may replace a body that was not sent.
func (c *Capture) WriteHeader(status int) {
	c.body = c.body[:0]
	c.ResponseWriter.WriteHeader(status)
}

func (c *Capture) Write(p []byte) (int, error) {
	c.body = append(c.body, p[:min(len(p), MaxBody+1-len(c.body))]...)
	return c.ResponseWriter.Write(p)
}

// Unwrap supports http.ResponseController.
func (c *Capture) Unwrap() http.ResponseWriter { return c.ResponseWriter }
