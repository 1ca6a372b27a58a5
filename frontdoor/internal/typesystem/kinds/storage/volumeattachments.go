package storage

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// attachedVolume checks that the source is either the name of a PersistentVolume or an
// inline volume.
func attachedVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	_, named := m["persistentVolumeName"].(string)
	const why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch inline := m["inlineVolumeSpec"] != nil; {
	case !inline && !named:
		c.Required(at, why)
	case inline && named:
		c.Forbidden(at, why)
	}
}

// Limits of the status of an attachment, in bytes.
const (
	maxAttachmentData = 256 << 10
	maxErrorMessage   = 1 << 10
)

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
	}
}
