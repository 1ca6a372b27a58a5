// Command image-digests is an admission service that lets pods run only images with a
// digest. It adds the digests of known tags, from a file that is read again when it changes.
package main

import (
	"context"
	"flag"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services/reload"
)

// readEvery is the minimum interval between two reads of the file of digests.
const readEvery = time.Second

func main() { sdk.Main(service()) }

func service() sdk.Service {
	p := &policy{}
	return sdk.Service{
		Name: "image-digests", Mutate: p.mutate, Validate: p.validate, Start: p.start,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&p.file, "digests", "digests.yaml", "`file` with the digests of known tags")
		},
	}
}

// start reads the file for the first time: without a valid one the service does not start.
func (p *policy) start(context.Context) (err error) {
	p.known, err = reload.Open(reload.Config[digests]{What: "digests", Paths: []string{p.file}, Parse: parseDigests, Every: readEvery, Log: slog.Default()})
	return err
}
