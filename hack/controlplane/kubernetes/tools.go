//go:build tools

// Package kubernetes pins the Kubernetes binaries that the tests and the demo
// run against. Nothing here is compiled; the imports keep go.sum complete.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
