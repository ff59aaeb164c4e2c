package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/ayegate/ayegate/internal/strictjson"
)

// ErrLineTooLong says that a line was longer than the reader allows. The line
// has been skipped up to its end, so reading may go on.
var ErrLineTooLong = errors.New("a line is longer than the limit")

// Lines reads newline-delimited messages, the framing of MCP over stdio. A
// message is a line without its end; CR LF is accepted for LF, empty lines are
// skipped, and what stands before the end of the input counts as a line (a JSON
// object cut short is no JSON object, so nothing can be mistaken for whole).
type Lines struct {
	r   *bufio.Reader
	max int
}

// NewLines returns a reader of lines of at most max bytes.
func NewLines(r io.Reader, max int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 32<<10), max: max}
}

// Next returns the next line in memory of its own. It returns [ErrLineTooLong]
// for a line that was skipped, and io.EOF at the end.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if line = trimEnd(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *Lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(trimEnd(part)) > l.max {
			return nil, l.skip(err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// skip reads to the end of the line whose last read ended with err.
func (l *Lines) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return ErrLineTooLong
}

func trimEnd(line []byte) []byte {
	return bytes.TrimRight(line, "\r\n")
}

// AppendLine appends message to dst as one line. White space between JSON tokens
// may hold newlines; they are taken out, and nothing else is.
func AppendLine(dst, message []byte) []byte {
	return append(appendOneLine(dst, message), '\n')
}

// appendOneLine appends message without any newline. In JSON a newline can only
// stand between tokens, so a message that has none is appended as it is.
func appendOneLine(dst, message []byte) []byte {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return append(dst, message...)
	}
	return strictjson.Compact(dst, message)
}
