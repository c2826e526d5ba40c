package controllers

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "mcpl.dev/operator/api/v1alpha1"
	"mcpl.dev/operator/internal/session"
)

// endpoint is where a connector can be dialled, or why it can't.
type endpoint struct {
	target session.Target
	pod    *v1.ConnectorPod
	// trouble is set while there is nothing to dial.
	trouble session.Trouble
}

// urlEndpoint is the endpoint of a connector outside the cluster.
func urlEndpoint(c *v1.Connector) endpoint {
	t := baseTarget(c)
	t.URL = c.Spec.URL
	t.TLS = len(c.Spec.URL) > 6 && c.Spec.URL[:6] == "wss://"
	return endpoint{target: t}
}

// podEndpoint picks the one pod that serves a connector: Ready and not terminating.
func podEndpoint(c *v1.Connector, pods []corev1.Pod) endpoint {
	var ready, others []corev1.Pod
	for _, pod := range pods {
		switch {
		case !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case podReady(&pod) && pod.Status.PodIP != "":
			ready = append(ready, pod)
		default:
			others = append(others, pod)
		}
	}
	switch len(ready) {
	case 0:
		return endpoint{trouble: noReadyPod(c, len(pods), others)}
	case 1:
	default:
		return endpoint{trouble: session.Trouble{Reason: v1.ReasonAmbiguousPods,
			Message: fmt.Sprintf("%d ready pods match spec.podSelector; a connector is one pod: narrow the selector, or scale to one", len(ready))}}
	}
	pod := &ready[0]
	wanted := intstr.FromString("mcpl")
	if c.Spec.Transport.Port != nil {
		wanted = *c.Spec.Transport.Port
	}
	port, ok := podPort(pod, wanted)
	if !ok {
		return endpoint{trouble: session.Trouble{Reason: v1.ReasonDialFailed,
			Message: fmt.Sprintf("pod %s has no container port named %s: see spec.transport.port", pod.Name, wanted.String())}}
	}
	t := baseTarget(c)
	t.Address = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))
	t.PodUID = pod.UID
	t.Path = cmp.Or(c.Spec.Transport.Path, "/mcpl")
	t.TLS = c.Spec.Transport.TLS != nil
	t.TCP = c.Spec.Transport.Type == v1.TransportTCP
	return endpoint{target: t, pod: &v1.ConnectorPod{Name: pod.Name, UID: string(pod.UID)}}
}

func baseTarget(c *v1.Connector) session.Target {
	t := session.Target{Namespace: c.Namespace}
	if ref := c.Spec.Transport.TokenSecretRef; ref != nil {
		t.TokenSecret, t.TokenKey = ref.Name, cmp.Or(ref.Key, "token")
	}
	if tls := c.Spec.Transport.TLS; tls != nil {
		t.ServerName = tls.ServerName
		if tls.CASecretRef != nil {
			t.CASecret = tls.CASecretRef.Name
		}
		if tls.ClientCertSecretRef != nil {
			t.ClientCertSecret = tls.ClientCertSecretRef.Name
		}
	}
	return t
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podPort is the number of a pod's port, given as one or as the name of a container's port.
func podPort(pod *corev1.Pod, port intstr.IntOrString) (int, bool) {
	if port.Type == intstr.Int {
		return port.IntValue(), port.IntValue() > 0
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == port.StrVal {
				return int(p.ContainerPort), true
			}
		}
	}
	return 0, false
}

// noReadyPod says why no pod serves, as far as the pods themselves say it.
func noReadyPod(c *v1.Connector, matching int, pods []corev1.Pod) session.Trouble {
	if len(pods) == 0 {
		message := "no pod matches spec.podSelector, which is " + metav1.FormatLabelSelector(c.Spec.PodSelector)
		if matching > 0 {
			message = fmt.Sprintf("the pods that match spec.podSelector have ended or are terminating: %d", matching)
		}
		return session.Trouble{Reason: v1.ReasonNoReadyPod, Message: message}
	}
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			waiting := status.State.Waiting
			if waiting == nil {
				continue
			}
			switch waiting.Reason {
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
				return session.Trouble{Reason: v1.ReasonImagePullFailed,
					Message: fmt.Sprintf("pod %s: the image of container %s can not be pulled", pods[i].Name, status.Name)}
			case "CrashLoopBackOff":
				return session.Trouble{Reason: v1.ReasonCrashLooping,
					Message: fmt.Sprintf("pod %s: container %s ends again and again: see its logs", pods[i].Name, status.Name)}
			}
		}
	}
	return session.Trouble{Reason: v1.ReasonPodNotReady, Message: fmt.Sprintf("pod %s is not ready", pods[0].Name)}
}
