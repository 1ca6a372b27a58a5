{{/* What every pod of the chart has in common. */}}

{{- define "portico.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "portico.containerSecurity" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
privileged: false
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Where a pod runs. Called with root, component and own: the values of the component,
which win over the values of all. */}}
{{- define "portico.scheduling" -}}
{{- $all := .root.Values.scheduling -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .own.priorityClassName | default $all.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .own.nodeSelector | default $all.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $affinity := deepCopy (.own.affinity | default $all.affinity) }}
{{- $apart := .own.antiAffinity | default "none" }}
{{- if and (ne $apart "none") (not (hasKey $affinity "podAntiAffinity")) }}
{{- /* The members of a quorum are lost with their node, so no two may share one. */}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "portico.selector" . | fromYaml)) }}
{{- if eq $apart "required" }}
{{- $_ := set $affinity "podAntiAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) }}
{{- else }}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) }}
{{- end }}
{{- end }}
{{- with $affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations | default $all.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .component }}
topologySpreadConstraints:
{{- range ternary .own.spread $all.spread (hasKey .own "spread") }}
  - maxSkew: {{ .maxSkew }}
    topologyKey: {{ .topologyKey }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels: {{- include "portico.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The probes of a service, over its status port. A process is live while it answers: none
is started again because another one is away. A front door is ready without the services that
it depends on: if it were not, their absence would leave its Service without endpoints, and
clients with refused connections instead of reads from memory and of 503 with Retry-After. What
is left of its checks are those of its own: started, not stopping, valid certificates. Called
with root, component and service. */}}
{{- define "portico.probes" -}}
{{- $readiness := "/readyz" -}}
{{- if eq .component "frontdoor" -}}
{{- $readiness = printf "/readyz?exclude=%s" (concat .service.calls (list "nats" "storage" "stored-objects") | join "&exclude=") -}}
{{- end -}}
startupProbe:
  httpGet: {path: /livez, port: status}
  periodSeconds: 2
  timeoutSeconds: 4
  failureThreshold: 30
readinessProbe:
  httpGet: {path: {{ quote $readiness }}, port: status}
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 2
livenessProbe:
  httpGet: {path: /livez, port: status}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}
