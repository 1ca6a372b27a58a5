package versions

import (
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

// shape is how the objects of a kind look in some of its versions, where they look
// otherwise than in the best one. Both functions change the object that they are
// given and share its parts: they replace what they change below the first level.
type shape struct {
	toBest, fromBest func(vocabulary.Vocabulary, map[string]any)
}

// shapes by group version, in its short form, and kind. A version that is not here
// looks like the best one of its kind, as it is in most kinds.
var shapes = map[string]*shape{
	"apiextensions./v1beta1 CustomResourceDefinition": {definitionToBest, definitionFromBest},
	"authorization./v1beta1 LocalSubjectAccessReview": oldReview,
	"authorization./v1beta1 SubjectAccessReview":      oldReview,
	"autoscaling/v1 HorizontalPodAutoscaler":          {autoscalerFromV1, autoscalerToV1},
	"autoscaling/v2beta1 HorizontalPodAutoscaler":     {autoscalerFromV2beta1, autoscalerToV2beta1},
	"certificates./v1beta1 CertificateSigningRequest": {signingRequestToBest, sameInOld},
	"discovery./v1beta1 EndpointSlice":                {endpointSliceToBest, endpointSliceFromBest},
	"extensions/v1beta1 Ingress":                      oldIngress,
	"networking./v1beta1 Ingress":                     oldIngress,
	"policy/v1beta1 PodDisruptionBudget":              {budgetToBest, budgetFromBest},
	"v1 Event":                                        {eventToBest, eventFromBest},
}

// shapeOf returns the shape of a kind in a version; nil when it is that of the best.
func (v Versions) shapeOf(apiVersion, kind string) *shape {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		apiVersion = v.vocabulary.ShortGroup(group) + "/" + version
	}
	return shapes[apiVersion+" "+kind]
}

// sameInOld is the way back to a version that differs only in what it may leave out.
func sameInOld(vocabulary.Vocabulary, map[string]any) {}
