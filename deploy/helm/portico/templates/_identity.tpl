{{/*
What a pod sees at /pki: the folder that portico pki makes for it and nothing else. It is
one Secret with the files of that folder, or is put together from cert-manager's Secrets.
*/}}

{{/* The volume of a service. Called with root and component. */}}
{{- define "portico.identity" -}}
- name: identity
  {{- if eq .root.Values.pki.mode "certManager" }}
  projected:
    defaultMode: 0440
    sources: {{- include "portico.identity.certManager" . | nindent 6 }}
  {{- else }}
  secret: {secretName: {{ include "portico.pki" .root }}-{{ .component }}, defaultMode: 0440}
  {{- end }}
{{- end -}}

{{/* The certificates of a folder, by the file: the authority that signs it. */}}
{{- define "portico.certificates" -}}
{{- if has .component (list "store" "watch-hub" "authn" "authz" "admission" "frontdoor") }}
peer: peers
{{- end }}
{{- if has .component (list "store" "watch-hub" "admin" "backup") }}
etcd: etcd
{{- end }}
{{- if has .component (list "watch-hub" "authz" "admission" "frontdoor") }}
nats: nats
{{- end }}
{{- if eq .component "frontdoor" }}
serving: serving
kubelet: nodes
proxy-client: front-proxy
{{- end }}
{{- if has .component (list "csr-signer" "token-cleaner" "lifecycle" "admin") }}
user: users
{{- end }}
{{- if eq .component "front-proxy" }}
client: front-proxy
{{- end }}
{{- end -}}

{{- define "portico.identity.certManager" -}}
{{- $pki := include "portico.pki" .root -}}
{{- $component := .component -}}
{{- range $file, $authority := include "portico.certificates" . | fromYaml }}
- secret:
    name: {{ $pki }}-{{ $component }}-{{ $file }}
    items:
      - {key: tls.crt, path: {{ $file }}.crt}
      - {key: tls.key, path: {{ $file }}.key}
      {{- if has $file (list "peer" "etcd" "nats") }}
      - {key: ca.crt, path: {{ $file }}-ca.crt}
      {{- end }}
{{- end }}
{{- if has .component (list "csr-signer" "token-cleaner" "lifecycle") }}
- secret: {name: {{ $pki }}-serving-ca, items: [{key: tls.crt, path: serving-ca.crt}]}
- configMap: {name: {{ include "portico.fullname" .root }}-workers, items: [{key: {{ .component }}, path: kubeconfig}]}
{{- end }}
{{- if eq .component "csr-signer" }}
- secret: {name: {{ $pki }}-users-ca, items: [{key: tls.crt, path: signing-ca.crt}, {key: tls.key, path: signing-ca.key}]}
{{- end }}
{{- if eq .component "frontdoor" }}
- secret: {name: {{ $pki }}-users-ca, items: [{key: tls.crt, path: kubelet-ca.crt}]}
{{- end }}
{{- if has .component (list "authn" "frontdoor") }}
- secret: {name: {{ $pki }}-users-ca, items: [{key: tls.crt, path: users-ca.crt}]}
- secret: {name: {{ $pki }}-front-proxy-ca, items: [{key: tls.crt, path: front-proxy-ca.crt}]}
- secret: {name: {{ $pki }}-service-account, items: [{key: tls.crt, path: service-account.pub}]}
{{- end }}
{{- if has .component (list "frontdoor" "lifecycle") }}
- secret: {name: {{ $pki }}-service-account, items: [{key: tls.key, path: service-account.key}]}
{{- end }}
{{- end -}}

{{/* The volumes of the members of etcd or NATS: each at /pki/HOST. They trust each
other, and a StatefulSet has one template for all. */}}
{{- define "portico.memberIdentities" -}}
{{- $pki := include "portico.pki" .root -}}
{{- $other := ternary "peer" "route" (eq .component "etcd") -}}
{{- $between := ternary "etcd-peers" "nats-routes" (eq .component "etcd") -}}
{{- $component := .component -}}
{{- $root := .root -}}
- name: identity
  projected:
    defaultMode: 0440
    sources:
    {{- range $i, $host := include "portico.members" . | fromJsonArray }}
    {{- $pod := splitList "." $host | first }}
    {{- if eq $root.Values.pki.mode "certManager" }}
      - secret:
          name: {{ $pki }}-{{ $component }}-server
          items:
            - {key: tls.crt, path: {{ $pod }}/server.crt}
            - {key: tls.key, path: {{ $pod }}/server.key}
            - {key: ca.crt, path: {{ $pod }}/{{ $component }}-ca.crt}
      - secret:
          name: {{ $pki }}-{{ $component }}-{{ $other }}
          items:
            - {key: tls.crt, path: {{ $pod }}/{{ $other }}.crt}
            - {key: tls.key, path: {{ $pod }}/{{ $other }}.key}
            - {key: ca.crt, path: {{ $pod }}/{{ $between }}-ca.crt}
      {{- if eq $component "nats" }}
      - configMap: {name: {{ include "portico.fullname" $root }}-nats, items: [{key: server.conf, path: {{ $pod }}/server.conf}]}
      {{- end }}
    {{- else }}
      - secret:
          name: {{ $pki }}-{{ $host }}
          items:
          {{- $files := list "server.crt" "server.key" (printf "%s.crt" $other) (printf "%s.key" $other) (printf "%s-ca.crt" $component) (printf "%s-ca.crt" $between) }}
          {{- if eq $component "nats" }}{{ $files = append $files "server.conf" }}{{ end }}
          {{- range $files }}
            - {key: {{ . }}, path: {{ $pod }}/{{ . }}}
          {{- end }}
    {{- end }}
    {{- end }}
{{- end -}}
