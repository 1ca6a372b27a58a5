package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// TestLaterRules checks defaults and errors of release 1.36, each by a part of the prepared
// object or of the causes.
func TestLaterRules(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const template = `template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}`
	for name, c := range map[string]struct{ ty, object, want string }{
		"job":             {"batch/v1/jobs", `spec: {` + template + `}`, "podReplacementPolicy: TerminatingOrFailed"},
		"job per index":   {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 1, backoffLimitPerIndex: 1, ` + template + `}`, "backoffLimit: 2147483647"},
		"job no index":    {"batch/v1/jobs", `spec: {backoffLimitPerIndex: 1, ` + template + `}`, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
		"job replacement": {"batch/v1/jobs", `spec: {podReplacementPolicy: TerminatingOrFailed, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: A}]}]}, ` + template + `}`, `spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed"`},
		"job rule":        {"batch/v1/jobs", `spec: {podFailurePolicy: {rules: [{action: Perhaps}]}, ` + template + `}`, "spec.podFailurePolicy.rules[0].action: Unsupported value"},
		"flow": {"flowcontrol.apiserver.platform.io/v1/flowschemas", `spec: {matchingPrecedence: -1, priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: User, group: {name: a}}], resourceRules: [{verbs: [get, a], apiGroups: ["*", a], resources: [a], namespaces: [A]}], nonResourceRules: [{verbs: ["*", get], nonResourceURLs: [/a*]}]}]}`,
			"spec.matchingPrecedence: Invalid value: -1: must be a positive value\nspec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"/a*\": wildcard can only do suffix matching\nspec.rules[0].nonResourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must not specify other verbs\n" +
				"spec.rules[0].resourceRules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other api groups\nspec.rules[0].resourceRules[0].namespaces[0]: Invalid value: \"A\": each member of this list must be '*' or a DNS-1123 label"},
		"failure's cause":  {"batch/v1/jobs", `spec: {podFailurePolicy: {rules: [{}]}, ` + template + `}`, "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required\nspec.podFailurePolicy.rules[0].action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"},
		"set's claims":     {"apps/v1/statefulsets", `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}, volumeClaimTemplates: [{metadata: {name: a}, spec: {}}]}`, "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required\nspec.volumeClaimTemplates[0].spec.resources[storage]: Required value"},
		"endpoint":         {"discovery.platform.io/v1/endpointslices", `{addressType: IPv4, endpoints: [{addresses: [a]}, {addresses: ["::1"]}, {}]}`, "endpoints[0].addresses[0]: Invalid value: \"a\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)\nendpoints[1].addresses[0]: Invalid value: \"::1\": must be a valid IPv4 address\nendpoints[2].addresses: Required value: must contain at least 1 address"},
		"two parameters":   {"admissionregistration.platform.io/v1/validatingadmissionpolicybindings", `spec: {policyName: a, validationActions: [Deny], paramRef: {name: a, selector: {}, parameterNotFoundAction: Deny}}`, "spec.paramRef.name: Forbidden: name and selector are mutually exclusive\nspec.paramRef.selector: Forbidden: name and selector are mutually exclusive"},
		"no parameters":    {"admissionregistration.platform.io/v1/validatingadmissionpolicybindings", `spec: {policyName: a, paramRef: {parameterNotFoundAction: Deny}}`, "spec.paramRef: Required value: one of name or selector must be specified\nspec.validationActions: Required value: at least one validation action is required"},
		"lease's strategy": {"coordination.platform.io/v1/leases", `spec: {strategy: ""}`, "spec.strategy.strategy: Unsupported value: \"\": supported values: \"OldestEmulationVersion\""},
		"flow's verbs": {"flowcontrol.apiserver.platform.io/v1/flowschemas", `spec: {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: User, group: {name: a}}], nonResourceRules: [{verbs: [a], nonResourceURLs: [/]}]}]}`,
			"verbs: Unsupported value: [\"a\"]: supported values: \"create\", \"delete\""},
		"flow's subject": {"flowcontrol.apiserver.platform.io/v1/flowschemas", `spec: {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: User, group: {name: a}}], nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]}]}`,
			"subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'\nspec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"},
		"level's queues": {"flowcontrol.apiserver.platform.io/v1/prioritylevelconfigurations", `spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {queues: -1, handSize: 3}}}}`,
			"spec.limited.limitResponse.queuing.handSize: Invalid value: 3: should not be greater than queues (-1)\nspec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive"},
		"no queues":          {"flowcontrol.apiserver.platform.io/v1/prioritylevelconfigurations", `spec: {type: Limited, limited: {limitResponse: {type: Reject, queuing: {queues: -1}}}}`, "-queuing.queues"},
		"level's type":       {"flowcontrol.apiserver.platform.io/v1/prioritylevelconfigurations", `spec: {type: Queue, limited: {nominalConcurrencyShares: -1}}`, "-nominalConcurrencyShares: Invalid"},
		"tokens in secrets":  {"storage.platform.io/v1/csidrivers", `spec: {serviceAccountTokenInSecrets: false}`, "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no tokenRequests are specified"},
		"driver's token":     {"storage.platform.io/v1/csidrivers", `spec: {tokenRequests: [{audience: a, expirationSeconds: 1}]}`, "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"},
		"capacity's class":   {"storage.platform.io/v1/csistoragecapacities", `storageClassName: A`, "storageClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
		"service":            {"v1/services", `spec: {clusterIP: None, ports: [{port: 80}]}`, "internalTrafficPolicy: Cluster"},
		"job exit codes":     {"batch/v1/jobs", `spec: {podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [0, 2, 1]}}]}, ` + template + `}`, "values: Invalid value: [0,2,1]: must be ordered\nspec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"},
		"job container":      {"batch/v1/jobs", `spec: {podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {containerName: x, operator: In, values: [1]}}]}, ` + template + `}`, "onExitCodes.containerName: Invalid value: \"x\": must be one of the container or initContainer names in the pod template"},
		"job fail index":     {"batch/v1/jobs", `spec: {podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [1]}}]}, ` + template + `}`, "rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set"},
		"job failed":         {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 2, backoffLimitPerIndex: 1, maxFailedIndexes: 3, ` + template + `}`, "spec.maxFailedIndexes: Invalid value: 3: must be less than or equal to completions"},
		"job many":           {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 100001, parallelism: 10001, backoffLimitPerIndex: 1, ` + template + `}`, "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000"},
		"job success":        {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 5, successPolicy: {rules: [{succeededIndexes: "1,3-4", succeededCount: 4}]}, ` + template + `}`, "must be less than or equal to 3 (the number of indexes in the specified succeededIndexes field)"},
		"job no success":     {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 5, successPolicy: {rules: [{}]}, ` + template + `}`, "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"},
		"job indexes":        {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 5, successPolicy: {rules: [{succeededIndexes: "3,1"}]}, ` + template + `}`, "error parsing succeededIndexes: non-increasing order, previous: 3, current: 1"},
		"job interval":       {"batch/v1/jobs", `spec: {completionMode: Indexed, completions: 5, successPolicy: {rules: [{succeededIndexes: "1-9"}]}, ` + template + `}`, `error parsing succeededIndexes: too large index: "9"`},
		"cron zone":          {"batch/v1/cronjobs", `spec: {schedule: "1 * * * *", timeZone: Europe/Nowhere, jobTemplate: {spec: {` + template + `}}}`, "spec.timeZone: Invalid value: \"Europe/Nowhere\": unknown time zone Europe/Nowhere"},
		"cron good zone":     {"batch/v1/cronjobs", `spec: {schedule: "1 * * * *", timeZone: Europe/Berlin, jobTemplate: {spec: {` + template + `}}}`, "-spec.timeZone"},
		"cron path":          {"batch/v1/cronjobs", `spec: {schedule: "1 * * * *", timeZone: ../etc/passwd, jobTemplate: {spec: {` + template + `}}}`, "unknown time zone ../etc/passwd"},
		"cron local":         {"batch/v1/cronjobs", `spec: {schedule: "1 * * * *", timeZone: local, jobTemplate: {spec: {` + template + `}}}`, "timeZone must be an explicit time zone"},
		"cron TZ":            {"batch/v1/cronjobs", `spec: {schedule: "TZ=UTC 1 * * * *", jobTemplate: {spec: {` + template + `}}}`, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"},
		"own users":          {"v1/pods", `spec: {hostUsers: false, hostPID: true, containers: [{name: a, image: b}]}`, "spec.HostPID: Forbidden: when `hostUsers` is false"},
		"windows":            {"v1/pods", `spec: {os: {name: windows}, securityContext: {runAsUser: 1}, containers: [{name: a, image: b}]}`, "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"},
		"linux":              {"v1/pods", `spec: {os: {name: linux}, securityContext: {windowsOptions: {}}, containers: [{name: a, image: b}]}`, "spec.securityContext.windowsOptions: Forbidden"},
		"other system":       {"v1/pods", `spec: {os: {name: plan9}, containers: [{name: a, image: b}]}`, "Unsupported value: \"plan9\""},
		"spread domains":     {"v1/pods", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 2, labelSelector: {}}], containers: [{name: a, image: b}]}`, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
		"spread policy":      {"v1/pods", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Maybe, labelSelector: {}}], containers: [{name: a, image: b}]}`, "nodeTaintsPolicy: Unsupported value: \"Maybe\""},
		"spread keys":        {"v1/pods", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b]}], containers: [{name: a, image: b}]}`, "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"},
		"affinity keys":      {"v1/pods", `spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}, matchLabelKeys: [b], mismatchLabelKeys: [b]}]}}, containers: [{name: a, image: b}]}`, "exists in both matchLabelKeys and mismatchLabelKeys"},
		"unknown claim":      {"v1/pods", `spec: {containers: [{name: a, image: b, resources: {claims: [{name: gpu}]}}]}`, "spec.containers[0].resources.claims[0]: Not found"},
		"claim used twice":   {"v1/pods", `spec: {resourceClaims: [{name: gpu, resourceClaimName: c}], containers: [{name: a, image: b, resources: {claims: [{name: gpu}, {name: gpu}]}}]}`, "spec.containers[0].resources.claims[1]: Duplicate value"},
		"gated pod":          {"v1/pods", `spec: {nodeName: node1, schedulingGates: [{name: a}], containers: [{name: a, image: b}]}`, "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
		"restart rules":      {"v1/pods", `spec: {containers: [{name: a, image: b, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]}]}`, "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"},
		"sidecar probe":      {"v1/pods", `spec: {containers: [{name: a, image: b}], initContainers: [{name: c, image: d, restartPolicy: Always, livenessProbe: {grpc: {port: 1}}}]}`, "-livenessProbe: Forbidden"},
		"odd variable":       {"v1/pods", `spec: {containers: [{name: a, image: b, env: [{name: "a b.c-1"}], envFrom: [{prefix: "1-", configMapRef: {name: c}}]}]}`, "-Invalid value"},
		"equals sign":        {"v1/pods", `spec: {containers: [{name: a, image: b, env: [{name: "a=b"}]}]}`, "env[0].name: Invalid value: \"a=b\""},
		"searches":           {"v1/pods", `spec: {dnsConfig: {searches: [., _tcp.example.com., ` + strings.Repeat("a.example.com, ", 20) + `]}, containers: [{name: a, image: b}]}`, "-searches: "},
		"33 searches":        {"v1/pods", `spec: {dnsConfig: {searches: [` + strings.Repeat("a.example.com, ", 33) + `]}, containers: [{name: a, image: b}]}`, "must not have more than 32 search paths"},
		"host addresses":     {"v1/pods", `spec: {containers: [{name: a, image: b, env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.hostIPs}}}]}]}`, "-valueFrom.fieldRef"},
		"variable's file":    {"v1/pods", `spec: {volumes: [{name: v}], containers: [{name: a, image: b, env: [{name: A, valueFrom: {fileKeyRef: {key: A, path: x.env, volumeName: v}}}]}]}`, "-valueFrom: Invalid value"},
		"missing volume":     {"v1/pods", `spec: {containers: [{name: a, image: b, env: [{name: A, valueFrom: {fileKeyRef: {key: A, path: ../x, volumeName: v}}}]}]}`, "env[0].valueFrom.fileKeyRef.path: Invalid value: \"../x\": must not contain '..'\nspec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"v\""},
		"kept volume":        {"v1/pods", `spec: {volumes: [{name: v, hostPath: {path: /a}}], containers: [{name: a, image: b, env: [{name: A, valueFrom: {fileKeyRef: {key: A, path: x, volumeName: v}}}]}]}`, "volumeName: Invalid value: \"v\": referenced volume must be of type emptyDir"},
		"no source":          {"v1/pods", `spec: {containers: [{name: a, image: b, env: [{name: A, valueFrom: {}}]}]}`, "`secretKeyRef` or `fileKeyRef`"},
		"recursive":          {"v1/pods", `spec: {volumes: [{name: v}], containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled, mountPropagation: HostToContainer}]}]}`, "volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified\nspec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"},
		"other recursion":    {"v1/pods", `spec: {volumes: [{name: v}], containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Often}]}]}`, "volumeMounts.recursiveReadOnly: Unsupported value: \"Often\""},
		"long pause":         {"v1/pods", `spec: {containers: [{name: a, image: b, lifecycle: {preStop: {sleep: {seconds: 31}}}}]}`, "preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"},
		"signal, no system":  {"v1/pods", `spec: {containers: [{name: a, image: b, lifecycle: {stopSignal: SIGUSR1}}]}`, "stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"},
		"signal of windows":  {"v1/pods", `spec: {os: {name: windows}, containers: [{name: a, image: b, lifecycle: {stopSignal: SIGUSR1}}]}`, "stopSignal: Unsupported value: \"SIGUSR1\": supported values: \"SIGKILL\", \"SIGTERM\""},
		"never restarted":    {"v1/pods", `spec: {restartPolicy: Never, containers: [{name: a, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}`, "resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'"},
		"restarted init":     {"v1/pods", `spec: {containers: [{name: a, image: b}], initContainers: [{name: c, image: d, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]}`, "initContainers[0].resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar initContainers"},
		"host name":          {"v1/pods", `spec: {hostnameOverride: A.b, setHostnameAsFQDN: true, containers: [{name: a, image: b}]}`, "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true\nspec.hostnameOverride: Invalid value: \"A.b\""},
		"long host name":     {"v1/pods", `spec: {hostnameOverride: ` + strings.Repeat("a", 65) + `, containers: [{name: a, image: b}]}`, "spec.hostnameOverride: Too long: may not be more than 64 bytes"},
		"whole pod":          {"v1/pods", `spec: {resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2}}, containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]}`, "-resources.requests"},
		"whole pod, gpu":     {"v1/pods", `spec: {resources: {limits: {example.com/gpu: 1}}, containers: [{name: a, image: b}]}`, "spec.resources.limits[example.com/gpu]: Unsupported value"},
		"whole pod, claims":  {"v1/pods", `spec: {resources: {claims: [{name: a}]}, containers: [{name: a, image: b}]}`, "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"},
		"small whole pod":    {"v1/pods", `spec: {resources: {requests: {cpu: 1}}, containers: [{name: a, image: b, resources: {requests: {cpu: 700m}}}, {name: c, image: b, resources: {requests: {cpu: 700m}}}]}`, "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 1400m"},
		"large container":    {"v1/pods", `spec: {resources: {limits: {cpu: 1}}, containers: [{name: a, image: b, resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]}`, "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1"},
		"request and limit":  {"v1/pods", `spec: {resources: {limits: {cpu: 1}, requests: {cpu: 2}}, containers: [{name: a, image: b}]}`, "spec.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"},
		"app armor":          {"v1/pods", `spec: {securityContext: {appArmorProfile: {type: Best}}, containers: [{name: a, image: b}]}`, "spec.securityContext.appArmorProfile.type: Unsupported value"},
		"groups policy":      {"v1/pods", `spec: {securityContext: {supplementalGroupsPolicy: Some}, containers: [{name: a, image: b}]}`, "supplementalGroupsPolicy: Unsupported value"},
		"balancer mode":      {"v1/services", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 10.1.1.1}]}}}`, "ipMode: VIP"},
		"balancer name":      {"v1/services", `{spec: {type: LoadBalancer, ports: [{port: 80}]}, status: {loadBalancer: {ingress: [{hostname: a}]}}}`, "-ipMode: VIP"},
		"template time":      {"apps/v1/deployments", `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {containers: [{name: a, image: b}]}}}`, "-creationTimestamp"},
		"external service":   {"v1/services", `spec: {type: ExternalName, externalName: a}`, "-internalTrafficPolicy"},
		"stateful set":       {"apps/v1/statefulsets", `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}`, "whenDeleted: Retain"},
		"sidecar":            {"v1/pods", `spec: {containers: [{name: a, image: b}], initContainers: [{name: c, image: d, livenessProbe: {grpc: {port: 1}}}]}`, "spec.initContainers[0].livenessProbe: Forbidden"},
		"two probes":         {"v1/pods", `spec: {containers: [{name: a, image: b, livenessProbe: {grpc: {port: 1}, exec: {command: [a]}}}]}`, "may not specify more than 1 handler type"},
		"gate":               {"v1/pods", `spec: {schedulingGates: [{name: "a b"}], containers: [{name: a, image: b}]}`, "spec.schedulingGates[0]: Invalid value"},
		"same gates":         {"v1/pods", `spec: {schedulingGates: [{name: a}, {name: a}], containers: [{name: a, image: b}]}`, "spec.schedulingGates[1]: Duplicate value: \"a\""},
		"linux container":    {"v1/pods", `spec: {os: {name: linux}, containers: [{name: a, image: b, securityContext: {windowsOptions: {}}}]}`, "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		"windows container":  {"v1/pods", `spec: {os: {name: windows}, initContainers: [{name: i, image: b, securityContext: {privileged: false}}], containers: [{name: a, image: b, securityContext: {capabilities: {}}}]}`, "spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod\nspec.initContainers[0].securityContext.privileged: Forbidden"},
		"host process":       {"v1/pods", `spec: {securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: a, image: b}, {name: c, image: b, securityContext: {windowsOptions: {hostProcess: false}}}]}`, "spec: Invalid value: \"\": If pod contains any hostProcess containers then all containers must be HostProcess containers\nspec.containers[1].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true\nspec.hostNetwork: Invalid value: false"},
		"whole host process": {"v1/pods", `spec: {hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: a, image: b}]}`, "-hostProcess containers"},
		"ports of host":      {"v1/pods", `spec: {hostNetwork: true, containers: [{name: a, image: b, ports: [{containerPort: 80, hostPort: 81}]}]}`, "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"},
		"default of host":    {"v1/pods", `spec: {hostNetwork: true, containers: [{name: a, image: b, ports: [{containerPort: 80}]}]}`, "hostPort: 80"},
		"template of host":   {"v1/podtemplates", `template: {spec: {hostNetwork: true, containers: [{name: a, image: b, ports: [{containerPort: 80}]}]}}`, "-hostPort"},
		"wrong template":     {"v1/podtemplates", `template: {spec: {hostNetwork: true, containers: [{name: a, image: b, ports: [{containerPort: 80, hostPort: 81}]}]}}`, "template.spec.containers[0].ports[0].hostPort: Invalid value: 81"},
		"unmasked":           {"v1/pods", `spec: {containers: [{name: a, image: b, securityContext: {procMount: Unmasked}}]}`, "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"},
		"own unmasked":       {"v1/pods", `spec: {hostUsers: false, containers: [{name: a, image: b, securityContext: {procMount: Unmasked}}]}`, "-procMount: Invalid"},
		"host's parameter":   {"v1/pods", `spec: {hostNetwork: true, hostIPC: true, securityContext: {sysctls: [{name: net/core/somaxconn, value: "1"}, {name: kernel.sem, value: "1"}, {name: vm.swappiness, value: "1"}]}, containers: [{name: a, image: b}]}`, "spec.securityContext.sysctls[0].name: Invalid value: \"net/core/somaxconn\": may not be specified when 'hostNetwork' is true\nspec.securityContext.sysctls[1].name: Invalid value: \"kernel.sem\": may not be specified when 'hostIPC' is true"},
		"node's value":       {"v1/pods", `spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: ["b c"]}]}]}}}, containers: [{name: a, image: b}]}`, "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"b c\""},
		"both claims":        {"v1/pods", `spec: {resourceClaims: [{name: a, resourceClaimName: b, resourceClaimTemplateName: c}, {name: d}], containers: [{name: a, image: b}]}`, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified\nspec.resourceClaims[1]: Invalid value: {\"name\":\"d\"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"},
		"part of claim":      {"v1/pods", `spec: {resourceClaims: [{name: gpu, resourceClaimName: c}], containers: [{name: a, image: b, resources: {claims: [{name: gpu, request: x}, {name: gpu}]}}]}`, "spec.containers[0].resources.claims[1]: Duplicate value: \"gpu\""},
		"two resizes":        {"v1/pods", `spec: {containers: [{name: a, image: b, resizePolicy: [{resourceName: cpu, restartPolicy: Never}, {resourceName: cpu, restartPolicy: NotRequired}]}]}`, "spec.containers[0].resizePolicy: Unsupported value: \"Never\": supported values: \"NotRequired\", \"RestartContainer\"\nspec.containers[0].resizePolicy[1]: Duplicate value: \"cpu\""},
		"deletion's cost":    {"v1/pods", `{metadata: {annotations: {controller.platform.io/pod-deletion-cost: "+1"}}, spec: {containers: [{name: a, image: b}]}}`, "metadata.annotations[controller.platform.io/pod-deletion-cost]: Invalid value: \"+1\": must be a 32bit integer"},
		"other armour":       {"v1/pods", `{metadata: {annotations: {container.apparmor.security.beta.platform.io/a: unconfined}}, spec: {containers: [{name: a, image: b, securityContext: {appArmorProfile: {type: RuntimeDefault}}}]}}`, "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"},
		"other seccomp":      {"v1/pods", `{metadata: {annotations: {seccomp.security.alpha.platform.io/pod: localhost/x}}, spec: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: "y"}}, containers: [{name: a, image: b}]}}`, "spec.securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match"},
		"padded armour":      {"v1/pods", `spec: {containers: [{name: a, image: b, securityContext: {appArmorProfile: {type: Localhost, localhostProfile: " x"}}}]}`, "appArmorProfile.localhostProfile: Invalid value: \" x\": must not be padded with whitespace"},
		"own claim":          {"v1/pods", `spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}}, {name: w, persistentVolumeClaim: {claimName: a-v}}], containers: [{name: a, image: b}]}`, "spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: \"a-v\": must not reference a PVC that gets created for an ephemeral volume"},
		"declared features":  {"v1/nodes", `status: {declaredFeatures: [B, A, A, c]}`, "status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically\nstatus.declaredFeatures[2]: Duplicate value: \"A\"\nstatus.declaredFeatures[3]: Invalid value: \"c\": invalid feature name"},
		"numeric":            {"v1/pods", `spec: {tolerations: [{key: a, operator: Gt, value: "1"}, {key: a, operator: About}], containers: [{name: a, image: b}]}`, "spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Gt\", \"Lt\"\nspec.tolerations[1].operator: Unsupported value: \"About\": supported values: \"Equal\", \"Exists\""},
		"mounted label":      {"v1/pods", `spec: {securityContext: {seLinuxChangePolicy: MountOption}, containers: [{name: a, image: b}]}`, "seLinuxChangePolicy: Unsupported value: \"MountOption\": supported values: \"Recursive\""},
		"debugger's probe":   {"v1/pods", `spec: {containers: [{name: a, image: b}], ephemeralContainers: [{name: d, image: b, livenessProbe: {}}]}`, "-handler type"},
		"token twice":        {"v1/pods", `spec: {serviceAccountName: a, volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}, {serviceAccountToken: {path: t}}]}}], containers: [{name: a, image: b}]}`, "-conflicting"},
		"slice of nothing":   {"resource./v1/resourceslices", `spec: {driver: a.b, allNodes: true}`, "spec.pool.name: Required value\nspec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"},
		"slice's node":       {"resource./v1/resourceslices", `spec: {driver: a.b, nodeName: A, pool: {name: b, resourceSliceCount: 1}, sharedCounters: [{name: s, counters: {c: {}}}], devices: [{name: d}]}`, "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed\nspec.nodeName: Invalid value: \"A\": a lowercase RFC 1123 subdomain"},
		"default counter":    {"resource./v1/resourceslices", `spec: {driver: a.b, allNodes: true, pool: {name: b, resourceSliceCount: 1}, devices: [{name: a, capacity: {c: {}}}]}`, "value: \"0\""},
		"template twice":     {"resource./v1/resourceclaimtemplates", `spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}, {name: a, exactly: {deviceClassName: b}}]}}}`, "spec.spec.devices.requests[1]: Duplicate value: \"a\""},
		"beta default":       {"resource./v1beta1/resourceclaims", `spec: {devices: {requests: [{name: a, deviceClassName: b}]}}`, "allocationMode: ExactCount"},
		"no expression":      {"resource./v1/deviceclasses", `spec: {selectors: [{cel: {}}]}`, "spec.selectors[0].cel.expression: Invalid value: \"\": compilation failed"},
		"claim's metadata":   {"resource./v1/resourceclaimtemplates", `spec: {metadata: {name: a}, spec: {}}`, "spec.metadata.name: Forbidden: cannot be set"},
		"level":              {"flowcontrol.apiserver./v1/prioritylevelconfigurations", `spec: {type: Limited, limited: {}}`, "nominalConcurrencyShares: 30"},
		"no level":           {"flowcontrol.apiserver./v1/prioritylevelconfigurations", `spec: {type: Limited}`, "spec.limited: Required value"},
		"claim":              {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}]}}`, "count: 1"},
		"claim of nothing":   {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a}]}}`, "spec.devices.requests[0]: Required value"},
		"claim twice":        {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}, {name: a, exactly: {deviceClassName: b}}]}}`, "spec.devices.requests[1]: Duplicate value"},
		"slice":              {"resource./v1/resourceslices", `spec: {driver: a, pool: {name: b, resourceSliceCount: 1}}`, "spec: Required value: exactly one of"},
		"address":            {"networking./v1/ipaddresses", `spec: {}`, "spec.parentRef: Required value"},
		"range":              {"networking./v1/servicecidrs", `spec: {cidrs: [10.0.0.1]}`, "spec.cidrs[0]: Invalid value"},
		"workload":           {"scheduling./v1alpha2/workloads", `spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 2}}}]}`, "-Invalid value"},
		"empty workload":     {"scheduling./v1alpha2/workloads", `spec: {}`, "spec.podGroupTemplates: Required value"},
		"two policies":       {"scheduling./v1alpha2/workloads", `spec: {podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}, gang: {minCount: 1}}}]}`, "spec.podGroupTemplates[0].schedulingPolicy: Forbidden: must specify exactly one of basic and gang"},
		"no gang":            {"scheduling./v1alpha2/podgroups", `spec: {schedulingPolicy: {gang: {minCount: 0}}}`, "spec.schedulingPolicy.gang.minCount: Invalid value: 0"},
		"group's claim":      {"scheduling./v1alpha2/podgroups", `spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: a}]}`, "spec.resourceClaims[0]: Required value: must specify exactly one of resourceClaimName and resourceClaimTemplateName"},
		"group's template":   {"scheduling./v1alpha2/podgroups", `spec: {schedulingPolicy: {basic: {}}, podGroupTemplateRef: {workload: {workloadName: a}}}`, "spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value"},
		"pools":              {"resource./v1alpha3/resourcepoolstatusrequests", `spec: {driver: a.example.com}`, "limit: 100"},
		"no answer":          {"resource./v1alpha3/resourcepoolstatusrequests", `spec: {driver: a.example.com}`, "-status:"},
		"empty answer":       {"resource./v1alpha3/resourcepoolstatusrequests", `{spec: {driver: a.example.com}, status: {}}`, "poolCount: 0"},
		"many pools":         {"resource./v1alpha3/resourcepoolstatusrequests", `spec: {driver: a.example.com, limit: 1001}`, "spec.limit: Invalid value: 1001: must be between 1 and 1000, inclusive"},
		"container metric":   {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {kind: a, name: b}, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: "", target: {type: Utilization}}}]}`, "spec.metrics[0].containerResource.container: Required value: must specify a container\nspec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"},
		"tolerance":          {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {kind: a, name: b}, behavior: {scaleUp: {tolerance: "-0.1"}}}`, "spec.behavior.scaleUp.tolerance: Invalid value: \"-100m\": must be greater than or equal to 0"},
		"attributes, none":   {"storage./v1/volumeattributesclasses", `{driverName: a, parameters: {}}`, "parameters: Required value: must contain at least one key/value pair"},
		"ranges":             {"networking./v1/servicecidrs", `spec: {cidrs: [10.0.0.0/24, 10.1.0.0/24]}`, "spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one IP for each IP family"},
		"3 ranges":           {"networking./v1/servicecidrs", `spec: {cidrs: [10.0.0.0/24, "fd00::/112", 10.1.0.0/24]}`, "may only hold up to 2 values"},
		"range, host bits":   {"networking./v1/servicecidrs", `spec: {cidrs: [10.0.0.1/24]}`, "spec.cidrs[0]: Invalid value: \"10.0.0.1/24\": must not have bits set beyond the prefix length"},
		"preferred holder":   {"coordination./v1/leases", `spec: {preferredHolder: a}`, "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"},
		"lease strategy":     {"coordination./v1/leases", `spec: {strategy: Best}`, "Unsupported value: \"Best\""},
		"hints":              {"discovery./v1/endpointslices", `{addressType: IPv4, endpoints: [{addresses: [10.1.2.3], hints: {forNodes: [{name: n1}, {name: n1}, {name: N_}]}}]}`, "endpoints[0].hints.forNodes[1].name: Duplicate value: \"n1\"\nendpoints[0].hints.forNodes[2].name: Invalid value: \"N_\""},
		"one pod":            {"v1/persistentvolumeclaims", `spec: {accessModes: [ReadWriteOncePod, ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
		"wrong source":       {"v1/persistentvolumeclaims", `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSourceRef: {kind: Pod, name: a, namespace: "b c"}}`, "spec.dataSourceRef.namespace: Invalid value: \"b c\""},
		"two sources":        {"v1/persistentvolumeclaims", `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: b}}`, "must match dataSourceRef"},
		"driver's period":    {"storage./v1/csidrivers", `spec: {nodeAllocatableUpdatePeriodSeconds: 5}`, "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 5: must be greater than or equal to 10 seconds"},
		"attributes":         {"storage./v1/volumeattributesclasses", `driverName: ""`, "driverName: Required value"},
		"policy":             {"admissionregistration./v1/validatingadmissionpolicies", `spec: {validations: [{expression: "true"}], matchConstraints: {}}`, "matchPolicy: Equivalent"},
		"policy of nothing":  {"admissionregistration./v1/validatingadmissionpolicies", `spec: {validations: [{expression: "true"}]}`, "spec.matchConstraints: Required value"},
		"binding":            {"admissionregistration./v1/validatingadmissionpolicybindings", `spec: {policyName: a, validationActions: [Deny], paramRef: {name: b, selector: {}, parameterNotFoundAction: Deny}}`, "spec.paramRef.name: Forbidden"},
		"mutation":           {"admissionregistration./v1/mutatingadmissionpolicies", `spec: {reinvocationPolicy: Never, matchConstraints: {}, mutations: [{patchType: JSONPatch}]}`, "spec.mutations[0].jsonPatch: Required value"},
		"budget":             {"policy/v1/poddisruptionbudgets", `status: {}`, "currentHealthy: 0"},
		"owner":              {"v1/configmaps", `metadata: {ownerReferences: [{apiVersion: v1, kind: A, name: a}]}`, "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"},
		"lease":              {"coordination./v1/leases", `spec: {preferredHolder: a}`, "spec.preferredHolder: Forbidden"},
		"volume attributes":  {"v1/persistentvolumes", `spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /a}, volumeAttributesClassName: a}`, "spec.csi: Required value"},
		"other source":       {"v1/persistentvolumeclaims", `spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSourceRef: {kind: Pod, name: a}}`, "spec.dataSourceRef: Invalid value: \"Pod\""},
		"stateful name":      {"apps/v1/statefulsets", `{metadata: {name: a.b}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}`, "metadata.name: Invalid value: \"a.b\": must not contain dots"},
		"stateful claim":     {"apps/v1/statefulsets", `spec: {selector: {matchLabels: {a: b}}, volumeClaimTemplates: [{spec: {}}], template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}`, "spec.template.spec.volumes[0].name: Required value"},
		"scaled core type":   {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: b}}`, "-apiVersion must specify API group"},
		"scaled group":       {"autoscaling/v1/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: a, name: b}}`, "apiVersion must specify API group"},
		"precedence":         {"flowcontrol.apiserver./v1/flowschemas", `spec: {matchingPrecedence: 1, priorityLevelConfiguration: {name: a}}`, "only the schema named 'exempt' may have matchingPrecedence 1"},
		"no response":        {"flowcontrol.apiserver./v1/prioritylevelconfigurations", `spec: {type: Limited, limited: {}}`, "spec.limited.limitResponse.type: Required value"},
		"two ranges":         {"networking./v1/servicecidrs", `spec: {cidrs: [10.0.0.0/24, 10.1.0.0/24]}`, "may specify no more than one IP for each IP family"},
		"local armor":        {"v1/pods", `spec: {securityContext: {appArmorProfile: {type: Localhost}}, containers: [{name: a, image: b}]}`, "localhostProfile: Required value: must be set when AppArmor type is Localhost"},
		"claim constraint":   {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}], constraints: [{requests: [c]}]}}`, "spec.devices.constraints[0]: Required value: exactly one of"},
		"claim reference":    {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}], constraints: [{requests: [c], matchAttribute: d.example.com/e}]}}`, "constraints[0].requests[0]: Invalid value: \"c\": must be the name of a request in the claim"},
		"claim config":       {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}], config: [{opaque: {driver: d.example.com, parameters: text}}]}}`, "parameters: Invalid value: \"<value omitted>\": must be a valid JSON object"},
		"claim count":        {"resource./v1/resourceclaims", `spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b, count: -1}}]}}`, "exactly.count: Invalid value: -1: must be greater than zero"},
		"class resource":     {"resource./v1/deviceclasses", `spec: {extendedResourceName: cpu}`, "spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name"},
		"slice attribute":    {"resource./v1/resourceslices", `spec: {driver: a, nodeName: b, pool: {name: b, resourceSliceCount: 1}, devices: [{name: a, attributes: {"x y": {}}}]}`, "devices[0].attributes[x y]: Invalid value: \"\": exactly one value must be specified"},
		"slice nodes":        {"resource./v1/resourceslices", `spec: {driver: a, allNodes: false, pool: {name: b, resourceSliceCount: 1}}`, "spec.allNodes: Invalid value: false: must be either unset or set to true"},
		"no maximum":         {"autoscaling/v2/horizontalpodautoscalers", `spec: {scaleTargetRef: {apiVersion: apps/v1, kind: a, name: b}}`, "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`\nspec.maxReplicas: Required value: must be set and greater than 0"},
		"no metrics":         {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: a, name: b}, metrics: []}`, "averageUtilization: 80"},
		"no policies":        {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: a, name: b}, behavior: {scaleDown: {policies: [], selectPolicy: ""}}}`, "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy\nspec.behavior.scaleDown.selectPolicy: Unsupported value: \"\""},
		"scaled container":   {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: a, name: b}, metrics: [{type: ContainerResource, containerResource: {name: a, container: B, target: {type: Value, averageValue: 1}}}]}`, "must be a standard resource for containers"},
		"described version":  {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: a, name: b}, metrics: [{type: Object, object: {metric: {name: a}, describedObject: {apiVersion: a/b/c, kind: a, name: b}, target: {type: Value, value: 1}}}]}`, "describedObject.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"},
		"job's empty mode":   {"batch/v1/jobs", `spec: {completionMode: "", podReplacementPolicy: "", ` + template + `}`, "spec.completionMode: Unsupported value: \"\": supported values: \"Indexed\", \"NonIndexed\"\nspec.podReplacementPolicy: Unsupported value: \"\""},
		"odd subject":        {"flowcontrol.apiserver.platform.io/v1/flowschemas", `spec: {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: Odd, group: {name: ""}}], nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]}]}`, "-subjects[0].group"},
		"subject's account":  {"flowcontrol.apiserver.platform.io/v1/flowschemas", `spec: {priorityLevelConfiguration: {name: a}, rules: [{subjects: [{kind: ServiceAccount, serviceAccount: {name: A, namespace: ""}}], nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]}]}`, "serviceAccount.namespace: Required value: must specify namespace for service account"},
		"autoscaler":         {"autoscaling/v2/horizontalpodautoscalers", `spec: {maxReplicas: 2, scaleTargetRef: {kind: a, name: b}}`, "averageUtilization: 80"},
		"template's image":   {"v1/podtemplates", `template: {spec: {volumes: [{name: v, image: {pullPolicy: Always}}], containers: [{name: a, image: b}]}}`, "-reference"},
		"image's policy":     {"v1/podtemplates", `template: {spec: {volumes: [{name: v, image: {}}], containers: [{name: a, image: b}]}}`, "pullPolicy: IfNotPresent"},
		"pod's image":        {"v1/pods", `{kind: Pod, spec: {volumes: [{name: v, image: {pullPolicy: Always}}], containers: [{name: a, image: b}]}}`, "spec.volumes[0].image.reference: Required value"},
		"own generation":     {"v1/configmaps", `{metadata: {generation: -1}}`, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"},
		"part's generation":  {"v1/podtemplates", `template: {metadata: {generation: -1}, spec: {containers: [{name: a, image: b}]}}`, "-generation: Invalid"},
		"first ordinal":      {"apps/v1/statefulsets", `spec: {ordinals: {}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}`, "start: 0"},
		"class's scope":      {"networking./v1/ingressclasses", `spec: {controller: a.b/c, parameters: {kind: k, name: m}}`, "scope: Cluster"},
		"class's namespace":  {"networking./v1/ingressclasses", `spec: {controller: a.b/c, parameters: {kind: k, name: m, namespace: o}}`, "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"},
		"topology's key":     {"storage./v1/storageclasses", `{provisioner: a/b, allowedTopologies: [{matchLabelExpressions: [{key: "", values: [a]}]}]}`, "allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: \"\": name part must be non-empty"},
		"device of several":  {"resource./v1beta1/resourceclaims", `spec: {devices: {requests: [{name: a, firstAvailable: [{name: b, deviceClassName: c}]}]}}`, "deviceClassName: \"\""},
		"ingress's service":  {"networking./v1/ingresses", `spec: {defaultBackend: {service: {name: 1a, port: {number: 80}}}}`, "-service.name"},
		"ingress's odd one":  {"networking./v1/ingresses", `spec: {defaultBackend: {service: {name: A, port: {number: 80}}}}`, "spec.defaultBackend.service.name: Invalid value: \"A\": a lowercase RFC 1123 label"},
		"managed by none":    {"batch/v1/jobs", `spec: {managedBy: "", ` + template + `}`, "spec.managedBy: Required value"},
		"event's finalizer":  {"v1/events", `{metadata: {finalizers: [a]}}`, "-finalizers[0]: Invalid"},
		"budget's finalizer": {"policy/v1/poddisruptionbudgets", `{metadata: {finalizers: [a]}}`, "-finalizers[0]: Invalid"},
		"lease's finalizer":  {"coordination./v1/leases", `{metadata: {finalizers: [a]}}`, "-finalizers: Invalid"},
		"webhook finalizer":  {"admissionregistration./v1/mutatingwebhookconfigurations", `{metadata: {finalizers: [a]}}`, "-finalizers[0]: Invalid"},
		"set's finalizer":    {"apps/v1/statefulsets", `{metadata: {finalizers: [a]}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}`, "metadata.finalizers[0]: Invalid value: \"a\": name is neither a standard finalizer name"},
	} {
		parts := strings.Split(c.ty, "/")
		group := ""
		if len(parts) == 3 {
			group, parts = engine.vocabulary.Group(parts[0]), parts[1:]
		}
		ty, ok := types.Lookup(group, parts[0], parts[1])
		if !ok {
			t.Fatalf("no type %s", c.ty)
		}
		object := decode(t, c.object)
		metadata := tree.Object(object, "metadata")
		if metadata["name"] == nil {
			metadata["name"] = "a"
		}
		if ty.Namespaced {
			metadata["namespace"] = "b"
		}
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := dump(t, object)
		if err := engine.Validate(t.Context(), ty, object, nil); err != nil {
			var s *services.Status
			if !errors.As(err, &s) {
				t.Fatal(err)
			}
			for _, cause := range s.Details.Causes {
				got += cause.Field + ": " + cause.Message + "\n"
			}
		}
		if without, not := strings.CutPrefix(c.want, "-"); strings.Contains(got, without) == not {
			t.Errorf("%s: want %q in\n%s", name, c.want, got)
		}
	}
}

// TestWarnings checks the warnings about pods and templates of release 1.36.
func TestWarnings(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const pod = `spec: {imagePullSecrets: [{name: a}, {name: a}, {}], volumes: [{name: v, rbd: {image: a, monitors: [b]}}, {name: w, projected: {sources: [{}]}}],
		topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}, containers: [{name: a, image: b}]}`
	ofPod := []string{`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod`,
		`spec.imagePullSecrets[1].name: duplicate name "a"`, `spec.imagePullSecrets[2].name: invalid empty name ""`, `spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod`,
		`spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+`, `volume "w" (Projected) has no sources provided`}
	const driver = `metadata: {name: a}, spec: {tokenRequests: [{audience: a}]`
	const workload = `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}`
	ofPods := []string{"metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"}
	tokens := []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
	for name, c := range map[string]struct {
		resource, object, old string
		want                  []string
	}{
		"pod": {"pods", `{metadata: {name: a, namespace: b}, ` + pod + `}`, "", ofPod},
		"ports and variables": {"pods", `{metadata: {name: a.c, namespace: b}, spec: {containers: [{name: a, image: b, env: [{name: X, value: "1"}, {name: X, value: "2"}, {name: X, value: $(X)3}], resources: {limits: {memory: 100m}},
			ports: [{name: p, containerPort: 80}, {name: q, containerPort: 80, hostIP: 192.0.2.1}]}, {name: c, image: b, ports: [{name: p, containerPort: 80, hostPort: 1}]}]}}`, "",
			[]string{"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
				`spec.containers[0].env[1]: hides previous definition of "X", which may be dropped when using apply`,
				"spec.containers[0].ports[1]: hostIP set without hostPort: {Name:q HostPort:0 ContainerPort:80 Protocol:TCP HostIP:192.0.2.1}", "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
				`spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`, `spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
				"spec.containers[1].ports[0]: duplicate port name \"p\" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]",
				"spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]", "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]"}},
		"updated pod": {"pods", `{metadata: {name: a, namespace: b}, ` + pod + `}`, `{metadata: {name: a, namespace: b}, ` + pod + `}`, nil},
		"service": {"services", `{metadata: {name: a, namespace: b, annotations: {service.platform.io/topology-aware-hints: auto}}, spec: {type: ClusterIP, externalIPs: [192.0.2.1], externalName: a.b, trafficDistribution: PreferClose, ports: [{port: 80}]}}`, "",
			[]string{"annotation service.platform.io/topology-aware-hints is deprecated, please use service.platform.io/topology-mode instead", `spec.externalIPs is deprecated and may no longer be implemented in some clusters`,
				`spec.externalName is ignored when spec.type is not "ExternalName"`, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`}},
		"invalid pod":   {"pods", `{metadata: {name: a, namespace: b}, spec: {imagePullSecrets: [{}]}}`, "", nil},
		"workload":      {"apps/deployments", `{metadata: {name: a.b, namespace: b}, ` + workload + `}}`, "", ofPods},
		"same workload": {"apps/deployments", `{metadata: {name: a.b, namespace: b}, ` + workload + `}}`, `{metadata: {name: a.b, namespace: b}, ` + workload + `}}`, nil},
		"job":           {"batch/jobs", `{metadata: {name: a.b, namespace: b}, spec: {selector: {matchLabels: {a: b}}, manualSelector: true, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}`, "", ofPods},
		"revisions":     {"apps/statefulsets", `{metadata: {name: a, namespace: b}, ` + workload + `, revisionHistoryLimit: -1}}`, "", []string{"spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"}},
		"certificate":   {"secrets", `{metadata: {name: a, namespace: b}, type: platform.io/tls, data: {tls.crt: YQ==, tls.key: YQ==}}`, "", []string{"tls: failed to find any PEM data in certificate input"}},
		"opaque secret": {"secrets", `{metadata: {name: a, namespace: b}, data: {tls.crt: YQ==, tls.key: YQ==}}`, "", nil},
		"external node": {"nodes", `{metadata: {name: a}, spec: {externalID: b}}`, "", []string{"spec.externalID: this field is deprecated, and is unused by Kubernetes"}},
		"recycled": {"persistentvolumes", `{metadata: {name: a, annotations: {volume.beta.platform.io/mount-options: x}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Recycle, storageos: {volumeName: v}}}`, "",
			[]string{`metadata.annotations[volume.beta.platform.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead`,
				"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
				"spec.storageOS: deprecated in v1.22, non-functional in v1.25+"}},
		"slice of names": {"discovery./endpointslices", `{metadata: {name: a, namespace: b}, addressType: FQDN, endpoints: []}`, "", []string{"spec.addressType: FQDN endpoints are deprecated"}},
		"driver":         {"storage./csidrivers", `{` + driver + `}}`, "", tokens},
		"updated driver": {"storage./csidrivers", `{` + driver + `, podInfoOnMount: true}}`, `{` + driver + `}}`, nil},
		"aware driver":   {"storage./csidrivers", `{` + driver + `, serviceAccountTokenInSecrets: true}}`, "", nil},
	} {
		var warned []string
		group, kind, grouped := strings.Cut(c.resource, "/")
		if !grouped {
			group, kind = "", group
		}
		ty, ok := types.Lookup(engine.vocabulary.Group(group), "v1", kind)
		if !ok {
			t.Fatalf("no type %s", c.resource)
		}
		ch := Change{Type: ty, Object: decode(t, c.object), Warn: func(texts ...string) { warned = append(warned, texts...) }}
		if c.old != "" {
			ch.Old = decode(t, c.old)
		}
		for _, object := range []map[string]any{ch.Object, ch.Old} {
			if object == nil {
				continue
			}
			if _, err := engine.Prepare(t.Context(), ch.Type, object, Strict); err != nil {
				t.Fatal(name, err)
			}
		}
		err := engine.ValidateChange(t.Context(), ch)
		if !slices.Equal(warned, c.want) {
			t.Errorf("%s: got %q, %v; want %q", name, warned, err, c.want)
		}
	}
}

// TestLaterChanges checks which changes of stored objects release 1.36 rejects.
func TestLaterChanges(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const job = `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}, `
	const pods = `template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]`
	const ownJob = `metadata: {name: a, namespace: b, uid: u, resourceVersion: "1"}, spec: {selector: {matchLabels: {controller-uid: u}}, suspend: true, template: {metadata: {labels: `
	const own = `{batch.platform.io/controller-uid: u, batch.platform.io/job-name: a, controller-uid: u`
	const jobEnd = `}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`
	const cluster = `metadata: {name: a, resourceVersion: "1"}, `
	const named = `metadata: {name: a, namespace: b, resourceVersion: "1"}, `
	const claim = `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, `
	const set = `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}, `
	const gated = `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {schedulingGates: [{name: g}], containers: [{name: a, image: b}]`
	for name, c := range map[string]struct{ ty, before, after, want string }{
		"suspended job": {"batch/v1/jobs", job + `suspend: true, ` + pods + `}}}`, job + `suspend: true, ` + pods + `, nodeSelector: {c: d}, affinity: {nodeAffinity: {}}}}}`, ""},
		"running job":   {"batch/v1/jobs", job + `suspend: false, ` + pods + `}}}`, job + `suspend: false, ` + pods + `, nodeSelector: {c: d}}}}`, "spec.template: Invalid value"},
		"other image":   {"batch/v1/jobs", job + `suspend: true, ` + pods + `}}}`, job + `suspend: true, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: a, image: c}]}}}`, "spec.template: Invalid value"},
		"managed by":    {"batch/v1/jobs", job + `managedBy: example.com/a, ` + pods + `}}}`, job + `managedBy: example.com/b, ` + pods + `}}}`, "spec.managedBy: Invalid value"},
		"gated pod":     {"v1/pods", gated + `}`, gated + `, nodeSelector: {a: b}}`, ""},
		"gated affinity": {"v1/pods", gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`,
			gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}, {key: b, operator: Exists}]}]}, preferredDuringSchedulingIgnoredDuringExecution: []}}}`, ""},
		"first affinity": {"v1/pods", gated + `}`, gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`, ""},
		"pod affinity":   {"v1/pods", gated + `}`, gated + `, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}}`, "pod updates may not change fields"},
		"more terms": {"v1/pods", gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`,
			gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}}`, "nodeSelectorTerms: Invalid value"},
		"other requirement": {"v1/pods", gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`,
			gated + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: b, operator: Exists}]}]}}}}`, "nodeSelectorTerms[0]: Invalid value"},
		"ordinals":         {"apps/v1/statefulsets", set + `ordinals: {start: 1}}`, set + `ordinals: {start: 2}, minReadySeconds: 3, revisionHistoryLimit: 4, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}`, ""},
		"service name":     {"apps/v1/statefulsets", set + `serviceName: a}`, set + `serviceName: b}`, "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals'"},
		"second range":     {"networking.platform.io/v1/servicecidrs", cluster + `spec: {cidrs: [10.0.0.0/24]}`, cluster + `spec: {cidrs: [10.0.0.0/24, "fd00::/112"]}`, ""},
		"other range":      {"networking.platform.io/v1/servicecidrs", cluster + `spec: {cidrs: [10.0.0.0/24]}`, cluster + `spec: {cidrs: [10.1.0.0/24]}`, "spec.cidrs[0]: Invalid value: \"10.1.0.0/24\": field is immutable"},
		"no second range":  {"networking.platform.io/v1/servicecidrs", cluster + `spec: {cidrs: [10.0.0.0/24, "fd00::/112"]}`, cluster + `spec: {cidrs: [10.0.0.0/24]}`, "spec.cidrs: Invalid value"},
		"driver":           {"storage.platform.io/v1/csidrivers", cluster + `spec: {podInfoOnMount: true, fsGroupPolicy: File}`, cluster + `spec: {podInfoOnMount: false, storageCapacity: true}`, ""},
		"driver's modes":   {"storage.platform.io/v1/csidrivers", cluster + `spec: {volumeLifecycleModes: [Persistent]}`, cluster + `spec: {volumeLifecycleModes: [Ephemeral]}`, "spec.volumeLifecycleModes: Invalid value"},
		"volume limit":     {"storage.platform.io/v1/csinodes", cluster + `spec: {drivers: [{name: a, nodeID: b, allocatable: {count: 1}}]}`, cluster + `spec: {drivers: [{name: a, nodeID: b, allocatable: {count: 2}}]}`, ""},
		"driver's node":    {"storage.platform.io/v1/csinodes", cluster + `spec: {drivers: [{name: a, nodeID: b}]}`, cluster + `spec: {drivers: [{name: a, nodeID: c}]}`, "spec.drivers: Invalid value"},
		"attributes":       {"storage.platform.io/v1/volumeattributesclasses", cluster + `driverName: a, parameters: {a: b}`, cluster + `driverName: a, parameters: {a: c}`, "parameters: Forbidden: updates to parameters are forbidden."},
		"bound attributes": {"v1/persistentvolumeclaims", claim + `volumeAttributesClassName: a}, status: {phase: Bound}`, claim + `volumeAttributesClassName: b}, status: {phase: Bound}`, ""},
		"free attributes":  {"v1/persistentvolumeclaims", claim + `volumeAttributesClassName: a}`, claim + `volumeAttributesClassName: b}`, "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
		"lost attributes":  {"v1/persistentvolumeclaims", claim + `volumeAttributesClassName: a}, status: {phase: Bound, currentVolumeAttributesClassName: a}`, claim + `volumeName: ""}, status: {phase: Bound}`, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"},
		"empty attributes": {"v1/persistentvolumeclaims", claim + `volumeName: ""}`, claim + `volumeAttributesClassName: ""}`, "spec: Forbidden: spec is immutable"},
		"unlabelled pods":  {"batch/v1/jobs", ownJob + own + `, job-name: a}` + jobEnd, ownJob + own + `}` + jobEnd, "spec.template.metadata.labels[job-name]: Required value: must be 'a'"},
		"older pods":       {"batch/v1/jobs", ownJob + `{controller-uid: u, job-name: a}` + jobEnd, ownJob + `{controller-uid: u, job-name: a}` + jobEnd, ""},
		"default class":    {"v1/persistentvolumeclaims", claim + `volumeName: ""}`, claim + `storageClassName: a}`, ""},
		"other class":      {"v1/persistentvolumeclaims", claim + `storageClassName: b}`, claim + `storageClassName: a}`, "spec: Forbidden: spec is immutable"},
		"recovered":        {"v1/persistentvolumeclaims", strings.Replace(claim, "1Gi", "5Gi", 1) + `volumeName: a}, status: {phase: Bound, capacity: {storage: 1Gi}}`, strings.Replace(claim, "1Gi", "2Gi", 1) + `volumeName: a}, status: {phase: Bound}`, ""},
		"shrunk":           {"v1/persistentvolumeclaims", strings.Replace(claim, "1Gi", "5Gi", 1) + `volumeName: a}, status: {phase: Bound, capacity: {storage: 2Gi}}`, claim + `volumeName: a}, status: {phase: Bound}`, "field can not be less than status.capacity"},
		"kept source":      {"v1/persistentvolumeclaims", claim + `dataSource: {kind: PersistentVolumeClaim, name: a}}`, claim + `dataSource: {kind: PersistentVolumeClaim, name: a}}`, ""},
		"gated pod less":   {"v1/pods", gated + `, nodeSelector: {a: b}}`, gated + `, nodeSelector: {a: c}}`, "only additions to spec.nodeSelector are allowed"},
		"pod, no gate":     {"v1/pods", strings.Replace(gated, "schedulingGates: [{name: g}], ", "", 1) + `}`, strings.Replace(gated, "schedulingGates: [{name: g}], ", "", 1) + `, nodeSelector: {a: b}}`, "pod updates may not change fields"},
		"kept target":      {"autoscaling/v1/horizontalpodautoscalers", named + `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: a, name: b}}`, named + `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: a, name: c}}`, ""},
		"other target":     {"autoscaling/v1/horizontalpodautoscalers", named + `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: a, name: b}}`, named + `spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: v1, kind: c, name: b}}`, "apiVersion must specify API group"},
		"other address":    {"v1/services", named + `spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}`, named + `spec: {clusterIP: 10.0.0.2, clusterIPs: [10.0.0.2], ports: [{port: 80}]}`, `spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set`},
		"empty label":      {"apps/v1/replicasets", strings.ReplaceAll(set, "{a: b}", `{a: b, e: ""}`) + `}`, strings.Replace(set, "{a: b}", `{a: b}`, 1) + `}`, "spec.selector: Invalid value"},
		"empty data":       {"v1/configmaps", named + `immutable: true, data: {a: "", b: c}`, named + `immutable: true, data: {b: c}`, "data: Forbidden: field is immutable"},
		"empty bytes":      {"v1/secrets", named + `immutable: true, data: {b: eA==}`, named + `immutable: true, data: {a: "", b: eA==}`, "data: Forbidden: field is immutable"},
		"empty parameter":  {"storage.platform.io/v1/storageclasses", cluster + `provisioner: a, parameters: {b: "", c: d}`, cluster + `provisioner: a, parameters: {c: d}`, "parameters: Invalid value"},
		"empty node label": {"batch/v1/jobs", job + `suspend: false, ` + pods + `, nodeSelector: {c: ""}}}}`, job + `suspend: false, ` + pods + `}}}`, "spec.template: Invalid value"},
		"empty attribute": {"v1/persistentvolumes", cluster + `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: a, volumeHandle: b, volumeAttributes: {c: ""}}}`,
			cluster + `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: a, volumeHandle: b}}`, "is immutable after creation"},
		"kept time zone": {"batch/v1/cronjobs", `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {schedule: "1 * * * *", timeZone: Gone/Zone, jobTemplate: {spec: {` + pods + `}}}}}`,
			`metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {schedule: "2 * * * *", timeZone: Gone/Zone, jobTemplate: {spec: {` + pods + `}}}}}`, ""},
	} {
		parts := strings.Split("/"+c.ty, "/")
		ty, ok := types.Lookup(parts[len(parts)-3], parts[len(parts)-2], parts[len(parts)-1])
		if !ok {
			t.Fatalf("no type %s", c.ty)
		}
		before, after := decode(t, "{"+c.before+"}"), decode(t, "{"+c.after+"}")
		for _, object := range []map[string]any{before, after} {
			if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		switch err := engine.Validate(t.Context(), ty, after, before); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestReportedCounts checks counts in statuses of release 1.36.
func TestReportedCounts(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const workload = `metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}`
	const attachment = `metadata: {name: a, resourceVersion: "1"}, spec: {attacher: a, nodeName: b, source: {persistentVolumeName: c}}`
	for name, c := range map[string]struct{ group, resource, object, status, want string }{
		"terminating": {"apps", "deployments", workload, `{terminatingReplicas: -1}`, "status.terminatingReplicas: Invalid value: -1"},
		"of a set":    {"apps", "replicasets", workload, `{terminatingReplicas: -1}`, "status.terminatingReplicas: Invalid value: -1"},
		"available":   {"apps", "statefulsets", "kind: StatefulSet, " + workload, `{replicas: 1, availableReplicas: 1}`, "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"},
		"in a set":    {"apps", "replicasets", workload, `{replicas: 1, availableReplicas: 1}`, "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"},
		"attached":    {"storage.", "volumeattachments", attachment, `{attached: false, attachError: {errorCode: -1}}`, "status.attachError.errorCode: Invalid value: -1"},
	} {
		ty, ok := types.Lookup(engine.vocabulary.Group(c.group), "v1", c.resource)
		if !ok {
			t.Fatalf("no type %s", c.resource)
		}
		change := Change{Type: ty, Subresource: "status", Object: decode(t, "{"+c.object+", status: "+c.status+"}"), Old: decode(t, "{"+c.object+"}")}
		for _, object := range []map[string]any{change.Object, change.Old} {
			if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
				t.Fatal(name, err)
			}
		}
		if err := engine.ValidateChange(t.Context(), change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestSuspendedJob checks what may change in a suspended Job of release 1.36.
func TestSuspendedJob(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	ty, _ := types.Lookup("batch", "v1", "jobs")
	const job = `{metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {manualSelector: true, suspend: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, c: %c}}, spec: {restartPolicy: Never, containers: [{name: a, image: %i, resources: {requests: {cpu: %r}}}]}}}, status: %s}`
	of := func(label, image, cpu, status string) map[string]any {
		object := decode(t, strings.NewReplacer("%c", label, "%i", image, "%r", cpu, "%s", status).Replace(job))
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatal(err)
		}
		return object
	}
	const stopped = `{startTime: "2026-01-01T00:00:00Z", conditions: [{type: Suspended, status: "True"}]}`
	for name, c := range map[string]struct{ label, image, cpu, status, want string }{
		"resources":      {"d", "x", "2", `{}`, ""},
		"labels":         {"e", "x", "1", `{}`, ""},
		"labels, later":  {"e", "x", "1", stopped, ""},
		"image":          {"d", "z", "1", `{}`, "spec.template.spec: Invalid value"},
		"active":         {"d", "x", "2", `{active: 1}`, "spec.template: Invalid value"},
		"labels, active": {"e", "x", "1", `{active: 1}`, "spec.template: Invalid value"},
		"running":        {"d", "x", "2", `{startTime: "2026-01-01T00:00:00Z"}`, "spec.template: Invalid value"},
	} {
		change := Change{Type: ty, Object: of(c.label, c.image, c.cpu, c.status), Old: of("d", "x", "1", c.status), Feature: func(string) bool { return true }, Warn: func(...string) {}}
		err := engine.ValidateChange(t.Context(), change)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOpaqueDuplicates: duplicate fields in values that a type does not describe are not reported.
func TestOpaqueDuplicates(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	ty, _ := types.Lookup("apps", "v1", "controllerrevisions")
	for finding, reported := range map[string]bool{`duplicate field "data.a.b"`: false, `duplicate field "data"`: true, `duplicate field "metadata.name"`: true,
		`duplicate field "metadata.ownerReferences[0].name"`: true, `duplicate field "other.a"`: true, `key "a" already set in map`: true} {
		object := decode(t, `{metadata: {name: a, namespace: b}, revision: 1, data: {a: {b: c}}}`)
		if warnings, err := engine.Prepare(t.Context(), ty, object, Warn, finding); err != nil || reported != slices.Equal(warnings, []string{finding}) {
			t.Errorf("%s: %q, %v", finding, warnings, err)
		}
		patch := Change{Type: ty, Object: decode(t, `{metadata: {name: a, namespace: b}, revision: 1, data: {a: {b: c}}}`), Patched: true}
		if warnings, err := engine.PrepareChange(t.Context(), patch, Warn, finding); err != nil || !slices.Equal(warnings, []string{finding}) {
			t.Errorf("in a patch, %s: %q, %v", finding, warnings, err)
		}
	}
}
