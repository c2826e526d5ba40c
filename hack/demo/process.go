package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// start starts one of the built binaries; what it prints goes to NAME.log.
func (d *demo) start(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(d.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(filepath.Join(d.dir, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d.started = append(d.started, cmd)
	return cmd, nil
}

// startListening starts a binary whose first line of output names the address it listens at.
func (d *demo) startListening(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(d.dir, name), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	d.started = append(d.started, cmd)
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // it ends with the process at the latest
		lines <- line
	}()
	select {
	case line := <-lines:
		for _, field := range strings.Fields(line) {
			if address, ok := strings.CutPrefix(field, "mcpl="); ok {
				return address, nil
			}
		}
		return "", fmt.Errorf("%s did not say where it listens, but: %s", name, strings.TrimSpace(line))
	case <-time.After(30 * time.Second):
		return "", errors.New(name + " did not say within 30 s where it listens")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
