// Package docs is the documentation as files. The front door serves it as a site, with reference
// pages that are made of what it serves itself.
package docs

import "embed"

// Files are the pages in Markdown, README.md being their table of contents, the pictures that they
// show, and reference/metrics.txt: the name, type, labels and processes of every metric, with the word
// used after those that are not shown before they are used.
//
//go:embed *.md decisions/*.md operations/*.md reference/metrics.txt console/light-list.png console/dark-history.png
var Files embed.FS
