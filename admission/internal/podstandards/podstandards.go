// Package podstandards enforces the Pod Security Standards: labels of a namespace name the
// level below which its pods are refused, audited or warned about. It decides which pods and
// templates are evaluated, and against what; the standards themselves are those of
// k8s.io/pod-security-admission. It serves PodSecurity under "Admission plugins" of the
// specification, since release 1.36.
package podstandards

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Plugin evaluates pods, templates of pods, and namespaces.
type Plugin struct {
	namespaces namespaces.Known
	vocabulary vocabulary.Vocabulary
	config     Config
	evaluator  policy.Evaluator
}

// New returns the plugin. The standard "latest" is that of a release.
func New(c Config, known namespaces.Known, v vocabulary.Vocabulary, r release.Release) Plugin {
	latest := api.MajorMinorVersion(1, r.Minor())
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), &latest)
	if err != nil {
		panic(err) // the checks are those of the library
	}
	return Plugin{namespaces: known, vocabulary: v, config: c, evaluator: evaluator}
}

// templates are the types whose objects have a template of pods, by group in short form.
var templates = map[string][]string{
	"":      {"podtemplates", "replicationcontrollers"},
	"apps":  {"daemonsets", "deployments", "replicasets", "statefulsets"},
	"batch": {"cronjobs", "jobs"},
}

// ignored are the subresources of pods that do not change what a pod may do.
var ignored = []string{"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"}

// Concerns reports whether the plugin evaluates objects of a type.
func (p Plugin) Concerns(r *review.Review) bool {
	switch {
	case r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate:
		return false
	case isPod(r):
		return !slices.Contains(ignored, r.Subresource)
	}
	return r.Subresource == "" && (r.IsNamespace() || hasTemplate(r))
}

func isPod(r *review.Review) bool { return r.Group == "" && r.Resource == "pods" }

func hasTemplate(r *review.Review) bool { return slices.Contains(templates[r.Group], r.Resource) }

// Idle reports whether templates in a namespace cause no warnings and audit annotations, whatever they contain.
func (p Plugin) Idle(r *review.Review) bool {
	if !hasTemplate(r) || len(p.config.Users) > 0 || p.config.exempts(r.Namespace) {
		return false
	}
	known, ok := p.namespaces.Mirror.Get("", r.Namespace)
	if !ok {
		return false
	}
	levels, wrong := p.levels(known.Labels)
	return len(wrong) == 0 && levels.Audit.Level == api.LevelPrivileged && levels.Warn.Level == api.LevelPrivileged
}

// Validate refuses pods below the level that their namespace enforces with Forbidden (403), and
// namespaces with unknown levels as Invalid (422). What is only audited or warned about is admitted.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	switch {
	case !p.Concerns(r):
		return nil
	case r.IsNamespace():
		return p.validateNamespace(ctx, r)
	case p.config.exempts(r.Namespace):
		p.annotate(r, api.ExemptionReasonAnnotationKey, "namespace")
		return nil
	case slices.Contains(p.config.Users, r.User.Name):
		p.annotate(r, api.ExemptionReasonAnnotationKey, "user")
		return nil
	}
	known, err := p.namespaces.Get(ctx, r.Namespace)
	if err != nil {
		if isPod(r) {
			return review.Failed("failed to look up namespace %q: %v", r.Namespace, err)
		}
		p.annotate(r, "error", fmt.Sprintf("failed to lookup namespace %q: %v", r.Namespace, err))
		return nil
	}
	return p.validate(r, known.Labels)
}

// validate evaluates a pod or a template in a namespace with these labels.
func (p Plugin) validate(r *review.Review, labels map[string]string) error {
	levels, wrong := p.levels(labels)
	if len(wrong) == 0 && levels.FullyPrivileged() {
		if isPod(r) {
			p.annotate(r, api.EnforcedPolicyAnnotationKey, api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}.String())
		}
		return nil
	}
	object, err := r.Current()
	if err != nil {
		return err
	}
	read, old := readTemplate, []byte(nil)
	if isPod(r) {
		read, old = readPod, r.OldObject
	}
	pod, err := read(object)
	if err != nil || pod == nil {
		return err
	}
	if r.Operation == services.OperationUpdate && old != nil {
		before, err := readPod(old)
		if err != nil {
			return err
		}
		if !changesImages(pod, before) {
			return nil
		}
	}
	if name := pod.Spec.RuntimeClassName; name != nil && slices.Contains(p.config.RuntimeClasses, *name) {
		p.annotate(r, api.ExemptionReasonAnnotationKey, "runtimeClass")
		return nil
	}
	if len(wrong) > 0 {
		p.annotate(r, "error", fmt.Sprintf("Failed to parse policy: %v", wrong.ToAggregate()))
	}
	return p.apply(r, levels, pod)
}

// apply refuses, annotates and warns as the levels say.
func (p Plugin) apply(r *review.Review, levels api.Policy, pod *corev1.PodTemplateSpec) error {
	if isPod(r) {
		p.annotate(r, api.EnforcedPolicyAnnotationKey, levels.Enforce.String())
	}
	known := map[api.LevelVersion]policy.AggregateCheckResult{} // often they are the same
	evaluate := func(level api.LevelVersion) policy.AggregateCheckResult {
		result, ok := known[level]
		if !ok {
			result = p.evaluate(level, pod)
			known[level] = result
		}
		return result
	}
	if result := evaluate(levels.Audit); !result.Allowed {
		p.annotate(r, api.AuditViolationsAnnotationKey, fmt.Sprintf("would violate PodSecurity %q: %s", levels.Audit, result.ForbiddenDetail()))
	}
	if isPod(r) {
		if result := evaluate(levels.Enforce); !result.Allowed {
			return r.Forbid("violates PodSecurity %q: %s", levels.Enforce, result.ForbiddenDetail())
		}
	}
	if result := evaluate(levels.Warn); !result.Allowed {
		r.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", levels.Warn, result.ForbiddenDetail()))
	}
	return nil
}

func (p Plugin) evaluate(level api.LevelVersion, pod *corev1.PodTemplateSpec) policy.AggregateCheckResult {
	return policy.AggregateCheckResults(p.evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
}

// annotate adds an audit annotation.
func (p Plugin) annotate(r *review.Review, key, value string) {
	r.Annotate(map[string]string{p.vocabulary.Qualified("pod-security", key): value})
}

// readPod decodes a pod, as far as the standards are about it.
func readPod(raw []byte) (*corev1.PodTemplateSpec, error) {
	var pod corev1.PodTemplateSpec
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, services.BadRequest("the pod is not readable: %v", err)
	}
	return &pod, nil
}

// readTemplate returns the template of an object of templates; nil if it has none.
func readTemplate(raw []byte) (*corev1.PodTemplateSpec, error) {
	type of struct {
		Template *corev1.PodTemplateSpec `json:"template"`
	}
	var object struct {
		of   // a PodTemplate
		Spec struct {
			of
			JobTemplate struct {
				Spec of `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, services.BadRequest("the template of pods is not readable: %v", err)
	}
	for _, t := range []*corev1.PodTemplateSpec{object.Template, object.Spec.Template, object.Spec.JobTemplate.Spec.Template} {
		if t != nil {
			return t, nil
		}
	}
	return nil, nil
}

// changesImages reports whether an update adds containers or changes images, all that an update can
// change of what the standards are about.
func changesImages(pod, before *corev1.PodTemplateSpec) bool {
	same := func(a, b corev1.Container) bool { return a.Image == b.Image }
	if !slices.EqualFunc(pod.Spec.Containers, before.Spec.Containers, same) || !slices.EqualFunc(pod.Spec.InitContainers, before.Spec.InitContainers, same) {
		return true
	}
	images := map[string]string{}
	for _, c := range before.Spec.EphemeralContainers {
		images[c.Name] = c.Image
	}
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool {
		image, had := images[c.Name]
		return !had || image != c.Image
	})
}

// controllerOf returns the uid of the controller of an object; empty if it has none.
func controllerOf(o metav1.ObjectMeta) string {
	if owner := metav1.GetControllerOfNoCopy(&o); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// standardPrefix is the prefix of the labels in the library.
var standardPrefix = strings.TrimSuffix(api.EnforceLevelLabel, "enforce")
