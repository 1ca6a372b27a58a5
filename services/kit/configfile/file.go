package configfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/reload"
)

// Config configures a File.
type Config[T any] struct {
	// Subject is what the file configures, such as authorization. It is part of the names of metrics.
	Subject string
	Path    string
	// Parse returns the value of a file's content.
	Parse func(content []byte) (T, error)
	// Replaceable returns an error if the value of a new file cannot replace those before.
	Replaceable func(T) error
	Metrics     prometheus.Registerer
	Log         *slog.Logger
}

// File is a configuration file that is read again when it changes, with the metrics that Kubernetes
// has for such files.
type File[T any] struct {
	files *reload.Files[*Content[T]]
	total *prometheus.CounterVec
	last  *prometheus.GaugeVec
	info  *prometheus.GaugeVec
}

// Content is what was read from a file.
type Content[T any] struct {
	Value T
	hash  string
}

// Open reads a file for the first time. Its content counts as used.
func Open[T any](c Config[T]) (*File[T], error) {
	prefix, flag := "apiserver_"+c.Subject+"_config_controller_", "--"+c.Subject+"-config"
	f := &File[T]{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "automatic_reloads_total",
			Help: "New contents of " + flag + ", by status: success, or failure if they were refused or the file could not be read."}, []string{"status"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "When new contents of " + flag + " were last used or refused."}, []string{"status"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "last_config_info",
			Help: "The hash of the " + flag + " in use."}, []string{"hash"}),
	}
	opened := false
	var err error
	f.files, err = reload.Open(reload.Config[*Content[T]]{What: c.Subject + " configuration", Paths: []string{c.Path}, Log: c.Log, Failed: f.Failed,
		Parse: func(content [][]byte) (*Content[T], error) {
			value, err := c.Parse(content[0])
			if err == nil && opened && c.Replaceable != nil {
				err = c.Replaceable(value)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Path, err)
			}
			return &Content[T]{value, Hash(content[0])}, nil
		}})
	if err != nil {
		return nil, err
	}
	opened = true
	c.Metrics.MustRegister(f.total, f.last, f.info)
	f.inUse(f.files.Get())
	return f, nil
}

// Get returns the newest content that is valid.
func (f *File[T]) Get() *Content[T] { return f.files.Get() }

// Failed counts content that cannot be used.
func (f *File[T]) Failed() { f.count("failure") }

// Used counts content that is in use now.
func (f *File[T]) Used(c *Content[T]) {
	f.count("success")
	f.inUse(c)
}

func (f *File[T]) count(status string) {
	f.total.WithLabelValues(status).Inc()
	f.last.WithLabelValues(status).SetToCurrentTime()
}

func (f *File[T]) inUse(c *Content[T]) {
	f.info.Reset()
	f.info.WithLabelValues(c.hash).Set(1)
}

// Hash returns the hash by which metrics name what is configured.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
