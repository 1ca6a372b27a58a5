package wire

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/net/http2"
)

// stream is one request and its response.
type stream struct {
	id     uint32
	sink   func([]byte)
	window int64 // remaining window of the request body
	used   int64 // used window of the response body
	status int
	size   int64
	text   []byte // of an error
	over   bool
}

// failure returns a StatusError unless the response is 2xx.
func (s *stream) failure() error {
	if s.status >= 200 && s.status < 300 {
		return nil
	}
	return &StatusError{Code: s.status, Text: string(s.text)}
}

// StatusError is a response other than 2xx, with the beginning of its body.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Text) }

// read reads and handles one frame.
func (c *Conn) read() error {
	frame, err := c.frames.ReadFrame()
	if err != nil {
		return err
	}
	switch f := frame.(type) {
	case *http2.DataFrame:
		return c.data(f)
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.WindowUpdateFrame:
		if s := c.streams[f.StreamID]; s != nil {
			s.window += int64(f.Increment)
		} else if f.StreamID == 0 {
			c.window += int64(f.Increment)
		}
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.answer(c.frames.WritePing(true, f.Data))
		}
	case *http2.RSTStreamFrame:
		if c.streams[f.StreamID] != nil {
			return fmt.Errorf("the server reset the stream: %v", f.ErrCode)
		}
	case *http2.GoAwayFrame:
		return c.leave(f)
	}
	return nil
}

// leave lets the requests end that the server still answers.
func (c *Conn) leave(f *http2.GoAwayFrame) error {
	c.leaving = true
	if f.ErrCode != http2.ErrCodeNo {
		return fmt.Errorf("the server ends the connection: %v %s", f.ErrCode, f.DebugData())
	}
	for id := range c.streams {
		if id > f.LastStreamID {
			return ErrLeaving
		}
	}
	return nil
}

func (c *Conn) data(f *http2.DataFrame) error {
	s := c.streams[f.StreamID]
	if s == nil {
		return errors.New("data for an unknown stream")
	}
	piece, whole := f.Data(), int64(f.Length)
	s.size += int64(len(piece))
	switch {
	case s.status >= 300:
		s.text = append(s.text, piece[:min(len(piece), maxErrorText-len(s.text))]...)
	case s.sink != nil:
		s.sink(piece)
	}
	if f.StreamEnded() {
		c.end(s)
	}
	return c.grant(s, whole)
}

// grant sends window updates after a quarter of a stream's window or half of the
// connection's was used.
func (c *Conn) grant(s *stream, used int64) error {
	s.used += used
	c.granted -= used
	if s.used >= refill && !s.over {
		if err := c.answer(c.frames.WriteWindowUpdate(s.id, uint32(s.used))); err != nil {
			return err
		}
		s.used = 0
	}
	if c.granted > connectionWindow/2 {
		return nil
	}
	missing := connectionWindow - c.granted
	c.granted = connectionWindow
	return c.answer(c.frames.WriteWindowUpdate(0, uint32(missing)))
}

func (c *Conn) headers(f *http2.MetaHeadersFrame) error {
	s := c.streams[f.StreamID]
	if s == nil {
		return errors.New("headers for an unknown stream")
	}
	if value := f.PseudoValue("status"); value != "" {
		status, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		s.status = status
	}
	if f.StreamEnded() {
		c.end(s)
	}
	return nil
}

func (c *Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	err := f.ForeachSetting(func(setting http2.Setting) error {
		switch setting.ID {
		case http2.SettingInitialWindowSize:
			for _, s := range c.streams {
				s.window += int64(setting.Val) - c.initialWindow
			}
			c.initialWindow = int64(setting.Val)
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(setting.Val)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.answer(c.frames.WriteSettingsAck())
}

// answer flushes a written frame, or returns the error of writing it.
func (c *Conn) answer(err error) error {
	if err != nil {
		return err
	}
	return c.out.Flush()
}

func (c *Conn) end(s *stream) {
	s.over = true
	if s.sink != nil && s.status < 300 {
		s.sink(nil)
	}
	delete(c.streams, s.id)
}
