package tools

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// serializer is for responses that are not decoded by the client, except errors.
func serializer() runtime.NegotiatedSerializer { return scheme.Codecs.WithoutConversion() }

// sizeText returns a number of bytes in a unit.
func sizeText(n float64) string {
	const unit = 1024
	for _, suffix := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < unit {
			return fmt.Sprintf("%.3g%s", n, suffix)
		}
		n /= unit
	}
	return fmt.Sprintf("%.3gTiB", n)
}
