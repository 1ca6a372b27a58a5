package frontdoor

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

// watchCache are the flags of kube-apiserver about its watch cache. They are accepted, so that its command lines
// start this service, and change nothing.
type watchCache struct {
	on    bool
	size  int
	sizes []string
}

func (w *watchCache) register(fs *pflag.FlagSet) {
	fs.BoolVar(&w.on, "watch-cache", true, "without effect: lists and watches are always served from memory; --feed-history, --feed-bytes and --copied-bytes say from how much")
	fs.IntVar(&w.size, "default-watch-cache-size", 100, "without effect: --feed-bytes bounds the changes that are kept for each resource type")
	fs.StringSliceVar(&w.sizes, "watch-cache-sizes", nil, "resource[.group]#size, without effect: --feed-bytes bounds the changes that are kept for each resource type")
}

// check returns a usage error for values that kube-apiserver refuses, and logs which flags change nothing.
func (w *watchCache) check(n *run.Node) error {
	for _, text := range w.sizes {
		_, size, found := strings.Cut(text, "#")
		if number, err := strconv.Atoi(size); !found || err != nil || number < 0 {
			return run.Usagef("--watch-cache-sizes: %q is not resource[.group]#size with a size of 0 or more", text)
		}
	}
	if !w.on || len(w.sizes) > 0 || n.Flags.Changed("default-watch-cache-size") {
		n.Log.Info("the flags of the watch cache have no effect: --feed-history, --feed-bytes and --copied-bytes bound what is kept in memory")
	}
	return nil
}
