{{/*
Further files that flags of a service name: its own certificates of external etcd and NATS, the
authorities of the collector of traces and of nodes, and the configuration of admission.
Called with root, component and service; in JSON, the name of each volume and mount path: its source.
*/}}
{{- define "portico.files" -}}
{{- $values := .root.Values -}}
{{- $files := dict -}}
{{- $secret := dict "etcd" "" "nats" "" "tracing" "" "nodes" "" "configuration" "" -}}
{{- if and .service.etcd (not $values.etcd.bundled) }}{{ $_ := set $secret "etcd" $values.etcd.external.secret }}{{ end -}}
{{- if and .service.nats (not $values.nats.bundled) }}{{ $_ := set $secret "nats" (index $values.nats.external.secrets .service.values) }}{{ end -}}
{{- if $values.tracing.endpoint }}{{ $_ := set $secret "tracing" $values.tracing.secret }}{{ end -}}
{{- if and (eq .component "frontdoor") $values.nodes.enabled $values.nodes.verify }}{{ $_ := set $secret "nodes" $values.nodes.secret }}{{ end -}}
{{- if eq .component "admission" }}{{ $_ := set $secret "configuration" $values.admissionConfiguration.secret }}{{ end -}}
{{- range $name, $own := $secret -}}
{{- if $own }}{{ $_ := set $files $name (dict "secret" (dict "secretName" $own "defaultMode" 0440)) }}{{ end -}}
{{- end -}}
{{- if and (eq .component "admission") $values.admissionConfiguration.plugins -}}
{{- $_ := set $files "configuration" (dict "configMap" (dict "name" (printf "%s-admission" (include "portico.fullname" .root)) "defaultMode" 0440)) -}}
{{- end -}}
{{- $files | toJson -}}
{{- end -}}

{{/* The configuration of the admission plugins. */}}
{{- define "portico.admissionConfiguration" -}}
apiVersion: {{ ternary "apiserver.config.platform.io/v1" "apiserver.config.k8s.io/v1" (eq .Values.vocabulary "platform") }}
kind: AdmissionConfiguration
plugins: {{- toYaml .Values.admissionConfiguration.plugins | nindent 2 }}
{{- end -}}
