package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mcpl.dev/operator/test/connector"
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

// startConnectorProcess starts the connector, whose first line of output says where it listens.
func (d *demo) startConnectorProcess(ctx context.Context, args ...string) (connector.Ready, error) {
	var ready connector.Ready
	cmd := exec.Command(filepath.Join(d.dir, "connector"), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return ready, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return ready, err
	}
	d.started = append(d.started, cmd)
	told := make(chan error, 1)
	go func() { told <- json.NewDecoder(out).Decode(&ready) }() // it ends with the process at the latest
	select {
	case err := <-told:
		return ready, err
	case <-time.After(30 * time.Second):
		return ready, errors.New("the connector did not say within 30 s where it listens")
	case <-ctx.Done():
		return ready, ctx.Err()
	}
}
