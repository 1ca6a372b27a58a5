package main

import (
	"fmt"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"
)

// digests are the digests of images by their full name with tag, as in
// docker.io/library/nginx:1.27.
type digests map[string]digest.Digest

// parseDigests reads the file: a map from image to digest.
func parseDigests(content [][]byte) (digests, error) {
	var file struct {
		Images map[string]string `json:"images"`
	}
	if err := yaml.UnmarshalStrict(content[0], &file); err != nil {
		return nil, err
	}
	known := digests{}
	for image, text := range file.Images {
		named, err := parseImage(image)
		if err != nil {
			return nil, fmt.Errorf("images: %q: %w", image, err)
		}
		if _, has := named.(reference.Digested); has {
			return nil, fmt.Errorf("images: %q has a digest already", image)
		}
		d, err := digest.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("images: %q: %q: %w", image, text, err)
		}
		if _, twice := known[named.String()]; twice {
			return nil, fmt.Errorf("images: %q is named twice", named)
		}
		known[named.String()] = d
	}
	return known, nil
}

// parseImage returns the full name of an image; the default tag is latest.
func parseImage(image string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, err
	}
	return reference.TagNameOnly(named), nil
}

// pin returns an image with the digest of its tag. ok is false if the image has a digest, its
// tag is not known, or it is not an image; then it stays as it is.
func (d digests) pin(image string) (pinned string, ok bool) {
	named, err := parseImage(image)
	if err != nil {
		return "", false
	}
	known, ok := d[named.String()]
	if !ok {
		return "", false
	}
	full, err := reference.WithDigest(named, known)
	if err != nil {
		return "", false
	}
	return full.String(), true
}

// pinned returns why an image is not accepted; nil if it has a digest.
func pinned(image string) error {
	named, err := parseImage(image)
	if err != nil {
		return err
	}
	if _, ok := named.(reference.Digested); !ok {
		return fmt.Errorf("%s has no digest", named)
	}
	return nil
}
