// Command probe sends a GET request and exits with 0 if the response is 200, otherwise with
// 1. A nats:// URL is that of a NATS server, which greets each client: it needs no credentials, and no
// monitoring page. It is the health check of images with third-party programs and without a shell.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const within = 3 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: probe URL")
		os.Exit(2)
	}
	if err := probe(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func probe(url string) error {
	if address, ok := strings.CutPrefix(url, "nats://"); ok {
		return greeted(address)
	}
	client := http.Client{Timeout: within}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

// greeting is how a NATS server begins, before TLS.
const greeting = "INFO {"

// greeted returns an error if the server does not greet.
func greeted(address string) error {
	conn, err := net.DialTimeout("tcp", address, within)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	got := make([]byte, len(greeting))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != greeting {
		return fmt.Errorf("it is no NATS server: %q", got)
	}
	return nil
}
