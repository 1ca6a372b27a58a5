package method

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
)

// tokenFileFor bounds how long the result for a static token may be cached: tokens never
// expire, and the files are read only at start.
const tokenFileFor = 5 * time.Minute

// TokenFile authenticates the tokens of static files (section "Authentication"). It keeps
// only hashes, so that the time of a lookup reveals nothing about a token.
type TokenFile struct {
	users map[[sha256.Size]byte]services.UserInfo
}

// NewTokenFile reads CSV files with the columns token, user name, uid and,
// optionally, a cell of comma-separated groups. Errors name file and line.
func NewTokenFile(paths []string) (*TokenFile, error) {
	m := &TokenFile{users: map[[sha256.Size]byte]services.UserInfo{}}
	for _, path := range paths {
		if err := m.read(path); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *TokenFile) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := csv.NewReader(file)
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

func (m *TokenFile) add(record []string) error {
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
		return errors.New("the token stands on an earlier line already")
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
	user, known := m.users[sha256.Sum256([]byte(c.BearerToken))]
	if !known {
		return services.Authentication{}, ErrNone
	}
	return services.Authentication{User: user, CacheFor: tokenFileFor}, nil
}

var _ Method = (*TokenFile)(nil)
