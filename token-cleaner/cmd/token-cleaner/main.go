// Command token-cleaner runs the token cleaner as its own process.
package main

import (
	"github.com/portico-platform/portico/services/kit/run"
	tokencleaner "github.com/portico-platform/portico/token-cleaner"
)

func main() {
	run.Main(run.App{
		Name:     "token-cleaner",
		About:    "deletes expired bootstrap tokens and signs cluster-info",
		Services: []run.Service{tokencleaner.Service()},
	})
}
