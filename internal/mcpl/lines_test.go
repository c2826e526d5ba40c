package mcpl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readLines reads lines until the end.
func readLines(r io.Reader, max int64) (lines []string, err error) {
	l := newLineReader(r, max)
	for {
		line, err := l.next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	cases := map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"nothing":                  {"", nil, io.EOF},
		"one":                      {"a\n", []string{"a"}, io.EOF},
		"without an end":           {"a", nil, io.ErrUnexpectedEOF},
		"one and a half":           {"a\nb", []string{"a"}, io.ErrUnexpectedEOF},
		"blank ones":               {"\n\n a \n", []string{"", "", " a "}, io.EOF},
		"carriage returns":         {"a\r\n\rb\n", []string{"a\r", "\rb"}, io.EOF},
		"no text":                  {"\x00\xff\n", []string{"\x00\xff"}, io.EOF},
		"over 64 KiB":              {long + "\n" + "a\n", []string{long, "a"}, io.EOF},
		"the most there may be":    {long + long + "\n", []string{long + long}, io.EOF},
		"one byte more":            {"a\n" + long + long + "x\nb\n", []string{"a"}, ErrMessageTooBig},
		"too long without an end":  {long + long + "x", nil, ErrMessageTooBig},
		"the most, without an end": {long + long, nil, io.ErrUnexpectedEOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(tc.stream),
				iotest.OneByteReader(strings.NewReader(tc.stream)),
				iotest.DataErrReader(strings.NewReader(tc.stream)),
			} {
				lines, err := readLines(r, 200<<10)
				equal(t, lines, tc.want)
				equal(t, err, tc.err)
			}
		})
	}
}

func TestLinesOfAStreamThatBreaks(t *testing.T) {
	broken := errors.New("broken")
	lines, err := readLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 100)
	equal(t, lines, []string{"a"})
	equal(t, err, broken)
}

// TestALineIsGivenUpAtTheLimit: no more is read of it than a buffer beyond.
func TestALineIsGivenUpAtTheLimit(t *testing.T) {
	var taken int
	counted := readerFunc(func(b []byte) (int, error) {
		taken += len(b)
		return endless{}.Read(b)
	})
	_, err := newLineReader(counted, 100<<10).next()
	equal(t, err, ErrMessageTooBig)
	if taken > 100<<10+32<<10 {
		t.Errorf("%d bytes were read", taken)
	}
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestALineStaysWhatItWas(t *testing.T) {
	l := newLineReader(strings.NewReader("one\ntwo\n"), 100)
	one, _ := l.next()
	two, _ := l.next()
	equal(t, fmt.Sprintf("%s %s", one, two), "one two")
}

// FuzzLines checks the lines of any stream, in any pieces, against splitting it.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint16(1), uint16(3))
	f.Add([]byte("{\"id\":1}\r\n\n[log]\n"), uint16(5), uint16(100))
	f.Add([]byte("no end"), uint16(2), uint16(6))
	f.Add(bytes.Repeat([]byte("x"), 17<<10), uint16(7000), uint16(16<<10))
	f.Fuzz(func(t *testing.T, stream []byte, piece, max uint16) {
		rest := stream
		pieces := readerFunc(func(b []byte) (int, error) {
			if len(rest) == 0 {
				return 0, io.EOF
			}
			n := copy(b, rest[:min(len(rest), int(piece)+1)])
			rest = rest[n:]
			return n, nil
		})
		var want []string
		wantErr := io.EOF
		for line := range bytes.Lines(stream) {
			content, ended := bytes.CutSuffix(line, []byte("\n"))
			if len(content) > int(max) {
				wantErr = ErrMessageTooBig
				break
			}
			if !ended {
				wantErr = io.ErrUnexpectedEOF
				break
			}
			want = append(want, string(content))
		}
		lines, err := readLines(pieces, int64(max))
		equal(t, lines, want)
		equal(t, err, wantErr)
	})
}
