{{/* Names, labels and images. */}}

{{- define "portico.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 30 | trimSuffix "-" -}}
{{- else if contains "portico" .Release.Name -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-portico" (.Release.Name | trunc 22 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* The prefix of the Secrets that hold identities: one for each folder of portico pki. */}}
{{- define "portico.pki" -}}
{{- .Values.pki.secretPrefix | default (printf "%s-pki" (include "portico.fullname" .)) -}}
{{- end -}}

{{/* Called with (dict "root" $ "component" "store"). */}}
{{- define "portico.selector" -}}
app.kubernetes.io/name: portico
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "portico.labels" -}}
{{ include "portico.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ include "portico.tag" . | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The tag of an image: that of the service, whose values are own if there are any, or that of
all. The image of etcd and NATS is a text. */}}
{{- define "portico.tag" -}}
{{- $image := (.own | default dict).image -}}
{{- $own := "" -}}
{{- if kindIs "map" $image }}{{ $own = $image.tag }}{{ end -}}
{{- $own | default .root.Values.image.tag | default .root.Chart.AppVersion -}}
{{- end -}}

{{/* The image of a program of the suite. */}}
{{- define "portico.image" -}}
{{- $image := .root.Values.image -}}
{{- with $image.registry -}}{{ . }}/{{- end -}}
{{ $image.prefix }}{{ .component }}:{{ include "portico.tag" . }}
{{- end -}}

{{/* The members of the bundled etcd or NATS, as a list of host names in JSON. */}}
{{- define "portico.members" -}}
{{- $name := printf "%s-%s" (include "portico.fullname" .root) .component -}}
{{- $hosts := list -}}
{{- $server := index .root.Values .component -}}
{{- if $server.bundled -}}
{{- range $i := until (int $server.replicas) -}}
{{- $hosts = append $hosts (printf "%s-%d.%s" $name $i $name) -}}
{{- end -}}
{{- end -}}
{{- $hosts | toJson -}}
{{- end -}}

{{- define "portico.etcdServers" -}}
{{- $urls := .Values.etcd.external.endpoints -}}
{{- if .Values.etcd.bundled -}}
{{- $urls = list -}}
{{- range include "portico.members" (dict "root" . "component" "etcd") | fromJsonArray -}}
{{- $urls = append $urls (printf "https://%s:2379" .) -}}
{{- end -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}

{{- define "portico.natsURL" -}}
{{- $urls := .Values.nats.external.urls -}}
{{- if .Values.nats.bundled -}}
{{- $urls = list -}}
{{- range include "portico.members" (dict "root" . "component" "nats") | fromJsonArray -}}
{{- $urls = append $urls (printf "tls://%s:4222" .) -}}
{{- end -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}

{{/* The names by which clients in this cluster reach the front door, in JSON. */}}
{{- define "portico.frontdoorHosts" -}}
{{- $name := printf "%s-frontdoor" (include "portico.fullname" .) -}}
{{- $ns := .Release.Namespace -}}
{{- $domain := .Values.clusterDomain -}}
{{- concat (list "frontdoor" "localhost" $name (printf "%s.%s" $name $ns) (printf "%s.%s.svc" $name $ns) (printf "%s.%s.svc.%s" $name $ns $domain)) .Values.pki.hosts | uniq | toJson -}}
{{- end -}}

{{- define "portico.frontdoorURL" -}}
https://{{ include "portico.fullname" . }}-frontdoor.{{ .Release.Namespace }}.svc:{{ .Values.frontdoor.service.port }}
{{- end -}}
