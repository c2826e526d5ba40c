package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpl.dev/operator/test/connector"
)

// asProgram makes the test binary the program.
const asProgram = "TEST_CONNECTOR_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestProgramListensAndEndsOnSIGTERM(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "channels.yaml")
	if err := os.WriteFile(file, []byte("- id: chat:lobby\n  label: Lobby\n- id: chat:ops\n  address: {room: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0],
		"--control", "127.0.0.1:0", "--channels", file, "--generate", "2", "--prefix", "demo", "--dialect", "0.4")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready connector.Ready
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the program said nothing: %v", err)
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("read %s: %v", line, err)
	}
	channels, err := connector.NewControl(ready.Control).Channels(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"chat:lobby Lobby", "chat:ops #ops", "demo:c1 #c1", "demo:c2 #c2"}
	if len(channels) != len(want) {
		t.Fatalf("want %q, got %v", want, channels)
	}
	for i, d := range channels {
		if got := d.ID + " " + d.Label; got != want[i] {
			t.Errorf("want %q, got %q", want[i], got)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

func TestReadChannelsSaysWhatIsWrong(t *testing.T) {
	for name, text := range map[string]string{
		"no id":          "- label: Lobby\n",
		"unknown member": "- id: a\n  lable: Lobby\n",
		"no list":        "id: a\n",
	} {
		t.Run(name, func(t *testing.T) {
			if ds, err := readChannels([]byte(text)); err == nil {
				t.Errorf("want an error, got %v", ds)
			}
		})
	}
}
