package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// follow keeps a ledger current until ctx ends. The function that it returns reports whether
// all pods that were stored at the start are in the ledger.
func follow(ctx context.Context, client kubernetes.Interface, l *ledger) (func() bool, error) {
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	if err := informer.SetTransform(reduce); err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { stored(l, o) },
		UpdateFunc: func(_, o any) { stored(l, o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				l.remove(pod.Namespace, pod.Name)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return registration.HasSynced, nil
}

func stored(l *ledger, o any) {
	if p, ok := o.(*corev1.Pod); ok {
		l.store(p.Namespace, p.Name, pod{p.UID, amountsOf(p)})
	}
}

// reduce keeps of a pod only what the ledger needs, so that the informer's cache stays small.
func reduce(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	keep := func(containers []corev1.Container) []corev1.Container {
		kept := make([]corev1.Container, len(containers))
		for i, c := range containers {
			kept[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
		return kept
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{InitContainers: keep(pod.Spec.InitContainers), Containers: keep(pod.Spec.Containers),
			Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}
