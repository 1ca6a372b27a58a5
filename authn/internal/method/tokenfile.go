package method

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/reload"
)

const (
	// tokenFileFor bounds how long the result for a static token may be cached.
	tokenFileFor = time.Second
	// tokenFileEvery is how often the files are read, while tokens are checked.
	tokenFileEvery = 250 * time.Millisecond
)

// TokenFile authenticates the tokens of static files (section "Authentication"), which are
// read again when they are replaced. It keeps only hashes, so that the time of a lookup
// reveals nothing about a token.
type TokenFile struct {
	files *reload.Files[*staticTokens]
}

// staticTokens is the content of the files.
type staticTokens struct {
	users  map[[sha256.Size]byte]services.UserInfo
	source string // identifies the content
}

// NewTokenFile reads CSV files with the columns token, user name, uid and,
// optionally, a cell of comma-separated groups. Errors name file and line. Files with errors
// that replace them are not used.
func NewTokenFile(paths []string, log *slog.Logger) (*TokenFile, error) {
	files, err := reload.Open(reload.Config[*staticTokens]{What: "static tokens", Paths: paths, Every: tokenFileEvery, Log: log,
		Parse: func(content [][]byte) (*staticTokens, error) { return parseTokens(paths, content) }})
	if err != nil {
		return nil, err
	}
	return &TokenFile{files}, nil
}

func parseTokens(paths []string, content [][]byte) (*staticTokens, error) {
	tokens, digest := &staticTokens{users: map[[sha256.Size]byte]services.UserInfo{}}, sha256.New()
	for i, text := range content {
		one := sha256.Sum256(text)
		digest.Write(one[:])
		if err := tokens.read(paths[i], text); err != nil {
			return nil, err
		}
	}
	tokens.source = hex.EncodeToString(digest.Sum(nil))
	return tokens, nil
}

func (m *staticTokens) read(path string, text []byte) error {
	lines := csv.NewReader(bytes.NewReader(text))
	lines.FieldsPerRecord = -1
	lines.TrimLeadingSpace = true
	for {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s: line %d: %w", path, syntax.StartLine, syntax.Err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := m.add(record); err != nil {
			line, _ := lines.FieldPos(0)
			return fmt.Errorf("%s: line %d: %w", path, line, err)
		}
	}
}

func (m *staticTokens) add(record []string) error {
	for i, cell := range record {
		record[i] = strings.TrimSpace(cell)
	}
	switch {
	case len(record) < 3:
		return fmt.Errorf("%d columns, need token, user name and uid", len(record))
	case len(record) > 4:
		return errors.New(`more than 4 columns: several groups belong in one cell, as in "group1,group2"`)
	case record[0] == "":
		return errors.New("the token is empty")
	case record[1] == "":
		return errors.New("the user name is empty")
	}
	user := services.UserInfo{Name: record[1], UID: record[2]}
	if len(record) == 4 {
		for group := range strings.SplitSeq(record[3], ",") {
			if group = strings.TrimSpace(group); group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	key := sha256.Sum256([]byte(record[0]))
	if _, taken := m.users[key]; taken {
		return errors.New("the token is a duplicate of an earlier line")
	}
	m.users[key] = user
	return nil
}

// Name implements Method.
func (m *TokenFile) Name() string { return "token-file" }

// Authenticate implements Method.
func (m *TokenFile) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	if c.BearerToken == "" {
		return services.Authentication{}, ErrNone
	}
	tokens := m.files.Get()
	user, known := tokens.users[sha256.Sum256([]byte(c.BearerToken))]
	if !known {
		return services.Authentication{}, ErrNone
	}
	return services.Authentication{User: user, CacheFor: tokenFileFor, Credential: services.Credential{Source: tokens.source}}, nil
}

var _ Method = (*TokenFile)(nil)
