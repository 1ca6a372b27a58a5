package storage

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Limits of the status of an attachment, in bytes.
const (
	maxAttachmentData = 256 << 10
	maxErrorMessage   = 1 << 10
)

// attachedVolume checks that the name of the volume is not empty.
func attachedVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["persistentVolumeName"] == "" && m["inlineVolumeSpec"] == nil {
		c.Required(at.Field("persistentVolumeName"), "must specify non empty persistentVolumeName")
	}
}

// attachmentReport limits the size of the status. Older versions have no subresource for
// it.
func attachmentReport(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	status, size := rules.Object(m, "status"), 0
	at := &field.Path{Name: "status"}
	for key, value := range rules.Object(status, "attachmentMetadata") {
		text, _ := value.(string)
		size += len(key) + len(text)
	}
	if size > maxAttachmentData {
		c.TooLong(at.Field("attachmentMetadata"), maxAttachmentData)
	}
	for _, name := range [...]string{"attachError", "detachError"} {
		if len(rules.Text(rules.Object(status, name), "message")) > maxErrorMessage {
			c.TooLong(at.Field(name).Field("message"), maxAttachmentData)
		}
		if code := rules.Number(rules.Object(status, name), "errorCode"); code < 0 {
			c.Invalid(at.Field(name).Field("errorCode"), code, "must be between 0 and 2147483647, inclusive")
		}
	}
}
