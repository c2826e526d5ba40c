package connector

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// reservePort binds an address without listening on it and returns it with its
// port. While the reservation stands, nobody else is given the port, and a
// connection to it is refused unless a listener of listenOn is there: so Pause
// can refuse connections without losing the address.
func reservePort(ctx context.Context, address string) (string, io.Closer, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, fmt.Errorf("give the address to listen on as host:port: %w", err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return "", nil, fmt.Errorf("give the address to listen on a port number: %w", err)
	}
	ip, err := resolve(ctx, host)
	if err != nil {
		return "", nil, err
	}
	bound, file, err := bind(ip, port)
	if err != nil {
		return "", nil, fmt.Errorf("listen on %s: %w: is another process using it?", address, err)
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(bound)), file, nil
}

func resolve(ctx context.Context, host string) (net.IP, error) {
	if host == "" {
		return net.IPv4zero, nil
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("give the address to listen on a local name or IP: %w", err)
	}
	for _, ip := range ips {
		if ip.To4() != nil {
			return ip, nil
		}
	}
	return ips[0], nil
}

func bind(ip net.IP, port int) (int, io.Closer, error) {
	family := unix.AF_INET6
	var address unix.Sockaddr
	if v4 := ip.To4(); v4 != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
	} else {
		address = &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip.To16())}
	}
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "reserved port")
	if err := share(fd); err != nil {
		return 0, nil, joinClose(err, file)
	}
	if err := unix.Bind(fd, address); err != nil {
		return 0, nil, joinClose(os.NewSyscallError("bind", err), file)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, nil, joinClose(os.NewSyscallError("getsockname", err), file)
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		port = name.Port
	case *unix.SockaddrInet6:
		port = name.Port
	}
	return port, file, nil
}

func joinClose(err error, f io.Closer) error {
	_ = f.Close() // it was of no use
	return err
}

// share lets a listener bind the port that is reserved.
func share(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// listenOn listens on a reserved address.
func listenOn(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failure error
		if err := raw.Control(func(fd uintptr) { failure = share(int(fd)) }); err != nil {
			return err
		}
		return failure
	}}
	return config.Listen(ctx, "tcp", address)
}
