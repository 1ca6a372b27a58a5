// Command probe asks a URL and exits with 0 when the answer is 200, else with 1: the
// health check of images that hold a program of others and no shell.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: probe URL")
		os.Exit(2)
	}
	client := http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get(os.Args[1])
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", answer.Status)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
