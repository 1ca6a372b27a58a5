{{/* The pod that makes and renews identities. It is the only one with a token of this
cluster, and may do nothing but write the Secrets of this suite and restart its NATS servers. */}}
{{- define "portico.identitiesPod" -}}
{{- $of := dict "root" .root "component" "" "own" .root.Values.pki.job -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
enableServiceLinks: false
restartPolicy: OnFailure
securityContext: {{- include "portico.podSecurity" .root | nindent 2 }}
{{- include "portico.scheduling" $of }}
containers:
  - name: identities
    image: {{ include "portico.image" (dict "root" .root "component" "portico") }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args:
      - hook
      - identities
      - --dir=/work/pki
      - --namespace={{ .root.Release.Namespace }}
      - --prefix={{ include "portico.pki" .root }}
      - --labels=app.kubernetes.io/name=portico,app.kubernetes.io/instance={{ .root.Release.Name }}
      - --server={{ .root.Values.pki.server | default (include "portico.frontdoorURL" .root) }}
      - --workers-server={{ include "portico.frontdoorURL" .root }}
      - --frontdoor-hosts={{ include "portico.frontdoorHosts" .root | fromJsonArray | join "," }}
      - --etcd-members={{ include "portico.members" (dict "root" .root "component" "etcd") | fromJsonArray | join "," }}
      - --nats-servers={{ include "portico.members" (dict "root" .root "component" "nats") | fromJsonArray | join "," }}
      {{- if .root.Values.nats.bundled }}
      - --nats-statefulset={{ include "portico.fullname" .root }}-nats
      {{- end }}
      - --validity={{ .root.Values.pki.validity }}
      - --renew-within={{ .root.Values.pki.renewWithin }}
    resources: {{- toYaml .root.Values.pki.job.resources | nindent 6 }}
    securityContext: {{- include "portico.containerSecurity" .root | nindent 6 }}
    volumeMounts:
      - {name: work, mountPath: /work}
volumes:
  - name: work
    emptyDir: {medium: Memory, sizeLimit: 16Mi}
{{- end -}}

{{/* The names of all Secrets that it writes, in JSON. */}}
{{- define "portico.identitySecrets" -}}
{{- $pki := include "portico.pki" . -}}
{{- $names := list $pki -}}
{{- range concat (list "admin" "backup" "balancer" "front-proxy" "node") (include "portico.suite" . | fromYaml | keys | sortAlpha)
  (include "portico.members" (dict "root" . "component" "etcd") | fromJsonArray)
  (include "portico.members" (dict "root" . "component" "nats") | fromJsonArray) -}}
{{- $names = append $names (printf "%s-%s" $pki .) -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* What it may do. Called with root, account and annotations. */}}
{{- define "portico.identitiesAccess" -}}
{{- $of := dict "root" .root "component" "identities" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "portico.labels" $of | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "portico.labels" $of | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
rules:
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, update]
    resourceNames: {{- include "portico.identitySecrets" .root | fromJsonArray | toYaml | nindent 6 }}
  # create cannot be restricted by resourceNames: authorization of a create has no name.
  - apiGroups: [""]
    resources: [secrets]
    verbs: [create]
  {{- if .root.Values.nats.bundled }}
  # NATS does not read its files again: a checksum in the annotations of its pods restarts them.
  - apiGroups: [apps]
    resources: [statefulsets]
    verbs: [get, patch]
    resourceNames: [{{ include "portico.fullname" .root }}-nats]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "portico.labels" $of | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .account }}}
subjects:
  - {kind: ServiceAccount, name: {{ .account }}, namespace: {{ .root.Release.Namespace }}}
{{- end -}}
