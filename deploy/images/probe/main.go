// Command probe sends a GET request and exits with 0 if the response is 200, otherwise with
// 1. It is the health check of images with third-party programs and without a shell.
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
