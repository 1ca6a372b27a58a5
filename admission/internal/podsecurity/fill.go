package podsecurity

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// check applies one policy to one pod, of which it has a copy.
type check struct {
	policy     *Policy
	vocabulary vocabulary.Vocabulary
	pod        *corev1.Pod
}

// fill sets what the pod leaves open and the policy has a value for.
func (c *check) fill() {
	s, pod := &c.policy.Spec, c.pod
	own := pod.Spec.SecurityContext
	if own == nil {
		own = &corev1.PodSecurityContext{}
	}
	if id := s.SupplementalGroups.first(); own.SupplementalGroups == nil && id != nil {
		own.SupplementalGroups = []int64{*id}
	}
	if own.FSGroup == nil {
		own.FSGroup = s.FSGroup.first()
	}
	if own.SELinuxOptions == nil && s.SELinux.Rule == mustRunAs {
		own.SELinuxOptions = s.SELinux.SELinuxOptions.DeepCopy()
	}
	if pod.Spec.SecurityContext != nil || !equality.Semantic.DeepEqual(*own, corev1.PodSecurityContext{}) {
		pod.Spec.SecurityContext = own
	}
	if profile := c.defaultSeccomp(); profile != "" {
		c.annotate(c.seccompOfPod(), profile)
	}
	if s.RuntimeClass != nil && pod.Spec.RuntimeClassName == nil {
		pod.Spec.RuntimeClassName = s.RuntimeClass.DefaultRuntimeClassName
	}
	for _, container := range containers(pod) {
		c.fillContainer(container)
	}
}

func (c *check) annotate(key, value string) {
	if c.pod.Annotations == nil {
		c.pod.Annotations = map[string]string{}
	}
	c.pod.Annotations[key] = value
}

func (c *check) fillContainer(container *container) {
	s := &c.policy.Spec
	own := container.context()
	if c.user(own) == nil {
		own.RunAsUser = s.RunAsUser.first()
	}
	if c.group(own) == nil {
		own.RunAsGroup = s.group().first()
	}
	if c.options(own) == nil && s.SELinux.Rule == mustRunAs {
		own.SELinuxOptions = s.SELinux.SELinuxOptions.DeepCopy()
	}
	key := c.appArmorOf(container.name)
	if profile := c.policy.Metadata.Annotations[c.vocabulary.Qualified("apparmor.security.beta", "defaultProfileName")]; profile != "" && c.pod.Annotations[key] == "" {
		c.annotate(key, profile)
	}
	yes, no := true, false
	if c.nonRoot(own) == nil && c.user(own) == nil && s.RunAsUser.Rule == mustRunAsNonRoot {
		own.RunAsNonRoot = &yes
	}
	own.Capabilities = s.capabilities(own.Capabilities)
	if s.ReadOnlyRootFilesystem && own.ReadOnlyRootFilesystem == nil {
		own.ReadOnlyRootFilesystem = &yes
	}
	if own.AllowPrivilegeEscalation == nil {
		own.AllowPrivilegeEscalation = s.DefaultAllowPrivilegeEscalation
	}
	if own.AllowPrivilegeEscalation == nil && !s.escalates() {
		own.AllowPrivilegeEscalation = &no
	}
	container.set(own)
}

// capabilities returns those of a container with what the policy adds and drops.
func (s *spec) capabilities(own *corev1.Capabilities) *corev1.Capabilities {
	given := corev1.Capabilities{}
	if own != nil {
		given = *own
	}
	add := slices.DeleteFunc(slices.Clone(s.DefaultAddCapabilities), func(c corev1.Capability) bool { return slices.Contains(given.Drop, c) })
	all := corev1.Capabilities{Add: union(add, given.Add), Drop: union(s.RequiredDropCapabilities, given.Drop)}
	if len(all.Add) == len(union(nil, given.Add)) && len(all.Drop) == len(union(nil, given.Drop)) {
		return own
	}
	return &all
}

// union returns the elements of both, sorted and each once.
func union(a, b []corev1.Capability) []corev1.Capability {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// container is a container of any kind.
type container struct {
	name    string
	secured **corev1.SecurityContext
	ports   []corev1.ContainerPort
	mounts  []corev1.VolumeMount
	list    string
	index   int
}

// containers returns all containers of a pod, those that run before the others first.
func containers(pod *corev1.Pod) (all []*container) {
	add := func(list string, i int, c *corev1.Container) {
		all = append(all, &container{name: c.Name, secured: &c.SecurityContext, ports: c.Ports, mounts: c.VolumeMounts, list: list, index: i})
	}
	for i := range pod.Spec.InitContainers {
		add("initContainers", i, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		add("containers", i, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i].EphemeralContainerCommon
		all = append(all, &container{name: c.Name, secured: &c.SecurityContext, ports: c.Ports, mounts: c.VolumeMounts, list: "ephemeralContainers", index: i})
	}
	return all
}

// context returns the security context of the container, which is empty when it has none.
func (c *container) context() *corev1.SecurityContext {
	if *c.secured == nil {
		return &corev1.SecurityContext{}
	}
	return *c.secured
}

// set gives the container a security context, unless it has none and needs none.
func (c *container) set(own *corev1.SecurityContext) {
	if *c.secured != nil || !equality.Semantic.DeepEqual(*own, corev1.SecurityContext{}) {
		*c.secured = own
	}
}

// user returns whom a container runs as: what it says itself, or else its pod.
func (c *check) user(own *corev1.SecurityContext) *int64 {
	if whole := c.pod.Spec.SecurityContext; own.RunAsUser == nil && whole != nil {
		return whole.RunAsUser
	}
	return own.RunAsUser
}

func (c *check) group(own *corev1.SecurityContext) *int64 {
	if whole := c.pod.Spec.SecurityContext; own.RunAsGroup == nil && whole != nil {
		return whole.RunAsGroup
	}
	return own.RunAsGroup
}

func (c *check) nonRoot(own *corev1.SecurityContext) *bool {
	if whole := c.pod.Spec.SecurityContext; own.RunAsNonRoot == nil && whole != nil {
		return whole.RunAsNonRoot
	}
	return own.RunAsNonRoot
}

func (c *check) options(own *corev1.SecurityContext) *corev1.SELinuxOptions {
	if whole := c.pod.Spec.SecurityContext; own.SELinuxOptions == nil && whole != nil {
		return whole.SELinuxOptions
	}
	return own.SELinuxOptions
}

// write puts what a policy has filled in into the object of a review.
func write(r *review.Review, before, after *corev1.Pod) error {
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	var failed error
	put := func(parent map[string]any, name string, was, is any) {
		if failed != nil || equality.Semantic.DeepEqual(was, is) {
			return
		}
		raw, err := json.Marshal(map[string]any{name: is})
		if err == nil {
			var encoded map[string]any
			encoded, err = tree.Decode(raw)
			parent[name] = encoded[name]
		}
		failed = err
		r.Changed()
	}
	spec := tree.Object(object, "spec")
	put(tree.Object(object, "metadata"), "annotations", before.Annotations, after.Annotations)
	put(spec, "securityContext", before.Spec.SecurityContext, after.Spec.SecurityContext)
	put(spec, "runtimeClassName", before.Spec.RuntimeClassName, after.Spec.RuntimeClassName)
	was := containers(before)
	for i, c := range containers(after) {
		if list := tree.List(spec, c.list); c.index < len(list) {
			if parent, ok := list[c.index].(map[string]any); ok {
				put(parent, "securityContext", *was[i].secured, *c.secured)
			}
		}
	}
	return failed
}
