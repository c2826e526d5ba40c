package mcpl

import (
	"bufio"
	"errors"
	"io"
)

// lineReader splits a byte stream into lines of any length up to a limit.
type lineReader struct {
	r   *bufio.Reader
	max int64 // bytes of a line, its end not counted
}

func newLineReader(r io.Reader, max int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 16<<10), max: max}
}

// next returns the next line without its end. It keeps no more of one than the
// limit, and fails with ErrMessageTooBig as soon as a line is over it, whether or
// not the line ever ends. A stream that ends between two lines gives io.EOF, one
// that ends within a line io.ErrUnexpectedEOF: what was cut off is no message.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if int64(len(line)+len(part)) > l.max {
			return nil, ErrMessageTooBig
		}
		line = append(line, part...)
		switch {
		case ended:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// discard reads to the end of the stream.
func (l *lineReader) discard() error {
	_, err := io.Copy(io.Discard, l.r)
	return err
}
