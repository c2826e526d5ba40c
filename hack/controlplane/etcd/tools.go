//go:build tools

// Package etcd pins the etcd that the tests and the demo run against. Nothing
// here is compiled; the import keeps go.sum complete.
package etcd

import _ "go.etcd.io/etcd/server/v3"
