package replacing

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	admissionregistrationv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1beta1"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv1 "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	autoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	batchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	certificatesv1 "k8s.io/client-go/applyconfigurations/certificates/v1"
	certificatesv1beta1 "k8s.io/client-go/applyconfigurations/certificates/v1beta1"
	coordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	coordinationv1beta1 "k8s.io/client-go/applyconfigurations/coordination/v1beta1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1 "k8s.io/client-go/applyconfigurations/discovery/v1"
	eventsv1 "k8s.io/client-go/applyconfigurations/events/v1"
	flowcontrolv1 "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	networkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	networkingv1beta1 "k8s.io/client-go/applyconfigurations/networking/v1beta1"
	nodev1 "k8s.io/client-go/applyconfigurations/node/v1"
	policyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	resourcev1 "k8s.io/client-go/applyconfigurations/resource/v1"
	resourcev1beta1 "k8s.io/client-go/applyconfigurations/resource/v1beta1"
	resourcev1beta2 "k8s.io/client-go/applyconfigurations/resource/v1beta2"
	schedulingv1 "k8s.io/client-go/applyconfigurations/scheduling/v1"
	storagev1 "k8s.io/client-go/applyconfigurations/storage/v1"
	storagev1beta1 "k8s.io/client-go/applyconfigurations/storage/v1beta1"
)

// extractor returns the typed configuration that a manager has applied, from an object in
// JSON.
type extractor func(object []byte, manager string) (any, error)

// by returns the extractor that uses a function of client-go.
func by[O, C any](extract func(*O, string) (*C, error)) extractor {
	return func(raw []byte, manager string) (any, error) {
		object := new(O)
		if err := json.Unmarshal(raw, object); err != nil {
			return nil, err
		}
		return extract(object, manager)
	}
}

// extractors are the functions of client-go by version and kind, with the short names of
// groups.
var extractors = map[string]extractor{
	"admissionregistration./v1 MutatingAdmissionPolicy":             by(admissionregistrationv1.ExtractMutatingAdmissionPolicy),
	"admissionregistration./v1 MutatingAdmissionPolicyBinding":      by(admissionregistrationv1.ExtractMutatingAdmissionPolicyBinding),
	"admissionregistration./v1 MutatingWebhookConfiguration":        by(admissionregistrationv1.ExtractMutatingWebhookConfiguration),
	"admissionregistration./v1 ValidatingAdmissionPolicy":           by(admissionregistrationv1.ExtractValidatingAdmissionPolicy),
	"admissionregistration./v1 ValidatingAdmissionPolicyBinding":    by(admissionregistrationv1.ExtractValidatingAdmissionPolicyBinding),
	"admissionregistration./v1 ValidatingWebhookConfiguration":      by(admissionregistrationv1.ExtractValidatingWebhookConfiguration),
	"admissionregistration./v1beta1 MutatingAdmissionPolicy":        by(admissionregistrationv1beta1.ExtractMutatingAdmissionPolicy),
	"admissionregistration./v1beta1 MutatingAdmissionPolicyBinding": by(admissionregistrationv1beta1.ExtractMutatingAdmissionPolicyBinding),
	"apps/v1 ControllerRevision":                                    by(appsv1.ExtractControllerRevision),
	"apps/v1 DaemonSet":                                             by(appsv1.ExtractDaemonSet),
	"apps/v1 Deployment":                                            by(appsv1.ExtractDeployment),
	"apps/v1 ReplicaSet":                                            by(appsv1.ExtractReplicaSet),
	"apps/v1 StatefulSet":                                           by(appsv1.ExtractStatefulSet),
	"autoscaling/v1 HorizontalPodAutoscaler":                        by(autoscalingv1.ExtractHorizontalPodAutoscaler),
	"autoscaling/v2 HorizontalPodAutoscaler":                        by(autoscalingv2.ExtractHorizontalPodAutoscaler),
	"batch/v1 CronJob":                                              by(batchv1.ExtractCronJob),
	"batch/v1 Job":                                                  by(batchv1.ExtractJob),
	"certificates./v1 CertificateSigningRequest":                    by(certificatesv1.ExtractCertificateSigningRequest),
	"certificates./v1beta1 ClusterTrustBundle":                      by(certificatesv1beta1.ExtractClusterTrustBundle),
	"certificates./v1beta1 PodCertificateRequest":                   by(certificatesv1beta1.ExtractPodCertificateRequest),
	"coordination./v1 Lease":                                        by(coordinationv1.ExtractLease),
	"coordination./v1beta1 LeaseCandidate":                          by(coordinationv1beta1.ExtractLeaseCandidate),
	"v1 ConfigMap":                                                  by(corev1.ExtractConfigMap),
	"v1 Endpoints":                                                  by(corev1.ExtractEndpoints),
	"v1 Event":                                                      by(corev1.ExtractEvent),
	"v1 LimitRange":                                                 by(corev1.ExtractLimitRange),
	"v1 Namespace":                                                  by(corev1.ExtractNamespace),
	"v1 Node":                                                       by(corev1.ExtractNode),
	"v1 PersistentVolume":                                           by(corev1.ExtractPersistentVolume),
	"v1 PersistentVolumeClaim":                                      by(corev1.ExtractPersistentVolumeClaim),
	"v1 Pod":                                                        by(corev1.ExtractPod),
	"v1 PodTemplate":                                                by(corev1.ExtractPodTemplate),
	"v1 ReplicationController":                                      by(corev1.ExtractReplicationController),
	"v1 ResourceQuota":                                              by(corev1.ExtractResourceQuota),
	"v1 Secret":                                                     by(corev1.ExtractSecret),
	"v1 Service":                                                    by(corev1.ExtractService),
	"v1 ServiceAccount":                                             by(corev1.ExtractServiceAccount),
	"discovery./v1 EndpointSlice":                                   by(discoveryv1.ExtractEndpointSlice),
	"events./v1 Event":                                              by(eventsv1.ExtractEvent),
	"flowcontrol.apiserver./v1 FlowSchema":                          by(flowcontrolv1.ExtractFlowSchema),
	"flowcontrol.apiserver./v1 PriorityLevelConfiguration":          by(flowcontrolv1.ExtractPriorityLevelConfiguration),
	"networking./v1 IPAddress":                                      by(networkingv1.ExtractIPAddress),
	"networking./v1 Ingress":                                        by(networkingv1.ExtractIngress),
	"networking./v1 IngressClass":                                   by(networkingv1.ExtractIngressClass),
	"networking./v1 NetworkPolicy":                                  by(networkingv1.ExtractNetworkPolicy),
	"networking./v1 ServiceCIDR":                                    by(networkingv1.ExtractServiceCIDR),
	"networking./v1beta1 IPAddress":                                 by(networkingv1beta1.ExtractIPAddress),
	"networking./v1beta1 ServiceCIDR":                               by(networkingv1beta1.ExtractServiceCIDR),
	"node./v1 RuntimeClass":                                         by(nodev1.ExtractRuntimeClass),
	"policy/v1 PodDisruptionBudget":                                 by(policyv1.ExtractPodDisruptionBudget),
	"rbac.authorization./v1 ClusterRole":                            by(rbacv1.ExtractClusterRole),
	"rbac.authorization./v1 ClusterRoleBinding":                     by(rbacv1.ExtractClusterRoleBinding),
	"rbac.authorization./v1 Role":                                   by(rbacv1.ExtractRole),
	"rbac.authorization./v1 RoleBinding":                            by(rbacv1.ExtractRoleBinding),
	"resource./v1 DeviceClass":                                      by(resourcev1.ExtractDeviceClass),
	"resource./v1 ResourceClaim":                                    by(resourcev1.ExtractResourceClaim),
	"resource./v1 ResourceClaimTemplate":                            by(resourcev1.ExtractResourceClaimTemplate),
	"resource./v1 ResourceSlice":                                    by(resourcev1.ExtractResourceSlice),
	"resource./v1beta1 DeviceClass":                                 by(resourcev1beta1.ExtractDeviceClass),
	"resource./v1beta1 ResourceClaim":                               by(resourcev1beta1.ExtractResourceClaim),
	"resource./v1beta1 ResourceClaimTemplate":                       by(resourcev1beta1.ExtractResourceClaimTemplate),
	"resource./v1beta1 ResourceSlice":                               by(resourcev1beta1.ExtractResourceSlice),
	"resource./v1beta2 DeviceClass":                                 by(resourcev1beta2.ExtractDeviceClass),
	"resource./v1beta2 DeviceTaintRule":                             by(resourcev1beta2.ExtractDeviceTaintRule),
	"resource./v1beta2 ResourceClaim":                               by(resourcev1beta2.ExtractResourceClaim),
	"resource./v1beta2 ResourceClaimTemplate":                       by(resourcev1beta2.ExtractResourceClaimTemplate),
	"resource./v1beta2 ResourceSlice":                               by(resourcev1beta2.ExtractResourceSlice),
	"scheduling./v1 PriorityClass":                                  by(schedulingv1.ExtractPriorityClass),
	"storage./v1 CSIDriver":                                         by(storagev1.ExtractCSIDriver),
	"storage./v1 CSINode":                                           by(storagev1.ExtractCSINode),
	"storage./v1 CSIStorageCapacity":                                by(storagev1.ExtractCSIStorageCapacity),
	"storage./v1 StorageClass":                                      by(storagev1.ExtractStorageClass),
	"storage./v1 VolumeAttachment":                                  by(storagev1.ExtractVolumeAttachment),
	"storage./v1 VolumeAttributesClass":                             by(storagev1.ExtractVolumeAttributesClass),
	"storage./v1beta1 VolumeAttributesClass":                        by(storagev1beta1.ExtractVolumeAttributesClass),
	"apiextensions./v1 CustomResourceDefinition":                    by(apiextensionsv1.ExtractCustomResourceDefinition),
}
