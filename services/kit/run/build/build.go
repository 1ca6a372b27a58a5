// Package build says as a metric what a process was built from, so that a skew between the
// processes of a suite is seen: its version, and the contracts that it knows. It decides
// nothing.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// version, and the commit and its date where the build does not record them, are set by the linker.
var version, commit, date = "devel", "", ""

// Metric is the name of the metric.
const Metric = "portico_build_info"

// Info returns a metric that is always 1, whose labels say what the process is, which
// vocabulary it speaks, and which release it emulates.
func Info(vocabulary, emulated string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: Metric, Help: "Build information of the process, and its vocabulary.",
		ConstLabels: prometheus.Labels{"version": version, "contracts": contracts(), "vocabulary": vocabulary, "emulated": emulated, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// contracts returns a hash of the contracts between services: processes with different ones
// are of different releases.
func contracts() string {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(pb.File_portico_proto))
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}
