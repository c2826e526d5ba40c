package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"
)

// lockPatience bounds the wait for another run that fills the cache. A build
// from nothing on a small machine stays well below it.
const lockPatience = 45 * time.Minute

// lock takes an exclusive lock that the kernel drops with the process, so a
// killed run never leaves a stale one.
func lock(ctx context.Context, path string, patience time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	held := tryLock(f)
	if held == nil {
		return func() { _ = f.Close() }, nil
	}

	log.Print("another run is filling the cache; waiting for it")
	defer tell(func() string { return "still waiting for the other run" })()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for errors.Is(held, syscall.EWOULDBLOCK) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, fmt.Errorf("another run has held %s for %s; if it hangs, end it and try again", path, patience)
		case <-retry.C:
			held = tryLock(f)
		}
	}
	if held != nil {
		return nil, fmt.Errorf("lock %s: %w", path, held)
	}
	return func() { _ = f.Close() }, nil
}

func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
