package cluster

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var getOptions = metav1.GetOptions{}

// WritePod writes the Pod of a connector that runs as a process of this machine, listening at
// address, as a kubelet would: Ready, with its IP and the port mcpl. There is no kubelet here.
func (c *Cluster) WritePod(ctx context.Context, namespace, name string, labels map[string]string, address string) (*corev1.Pod, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	automount := false
	pod, err := clients.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &automount,
			ServiceAccountName:           "default",
			Containers: []corev1.Container{{
				Name: "connector", Image: "connector",
				Ports: []corev1.ContainerPort{{Name: "mcpl", ContainerPort: int32(port)}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: host, PodIPs: []corev1.PodIP{{IP: host}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	}
	return clients.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}
