{{/*
The suite: the services, and the edges between them as docs/architecture.md draws them.
Flags, Services, mounted files and network policies are all made from this.

  values        key of the service in values.yaml
  calls         services that it calls
  etcd, nats    it is a client of etcd, of NATS
  worker        it is a client of the front door
  outside       it calls what is not part of the suite: webhooks of admission, authentication and authorization, token issuers
  certificates  what it shows, by the authority that signs it
*/}}
{{- define "portico.suite" -}}
store:         {values: store, etcd: true}
watch-hub:     {values: watchHub, etcd: true, nats: true}
authn:         {values: authn, calls: [store], outside: true}
authz:         {values: authz, calls: [store, watch-hub], nats: true, outside: true}
admission:     {values: admission, calls: [store, watch-hub, authz], nats: true, outside: true}
frontdoor:     {values: frontdoor, calls: [store, watch-hub, authn, authz, admission], nats: true, outside: true}
csr-signer:    {values: csrSigner, worker: true}
token-cleaner: {values: tokenCleaner, worker: true}
lifecycle:     {values: lifecycle, worker: true}
{{- end -}}

{{/* Flags of one service, but for extraArgs. Called with root, component, service and own. */}}
{{- define "portico.args" -}}
{{- $root := .root -}}
{{- $name := include "portico.fullname" $root -}}
{{- $seeds := ne $root.Values.pki.mode "certManager" -}}
- --vocabulary={{ $root.Values.vocabulary }}
{{- with .own.emulatedVersion | default $root.Values.emulatedVersion }}
- --emulated-version={{ . }}
{{- end }}
- --log-level={{ $root.Values.log.level }}
- --log-format={{ $root.Values.log.format }}
- --status-address=:8080
{{- if .service.worker }}
- --kubeconfig=/pki/kubeconfig
{{- else }}
- --peer-ca-file=/pki/peer-ca.crt
- --peer-cert-file=/pki/peer.crt
- --peer-key-file=/pki/peer.key
{{- if ne .component "frontdoor" }}
- --rpc-address=:7443
{{- end }}
{{- end }}
{{- range .service.calls }}
- --{{ . }}-address=dns:///{{ $name }}-{{ . }}:7443
{{- end }}
{{- if .service.etcd }}
{{- include "portico.args.etcd" $root }}
{{- end }}
{{- if .service.nats }}
{{- $own := and (not $root.Values.nats.bundled) (index $root.Values.nats.external.secrets .service.values) }}
- --nats-url={{ include "portico.natsURL" $root }}
- --nats-ca-file={{ ternary "/nats/ca.crt" "/pki/nats-ca.crt" (not (empty $own)) }}
- --nats-cert-file={{ ternary "/nats/tls.crt" "/pki/nats.crt" (not (empty $own)) }}
- --nats-key-file={{ ternary "/nats/tls.key" "/pki/nats.key" (not (empty $own)) }}
{{- if $own }}
{{- if $root.Values.nats.external.seeds }}
- --nats-nkey-seed-file=/nats/nats.seed
{{- end }}
{{- else if $seeds }}
- --nats-nkey-seed-file=/pki/nats.seed
{{- end }}
{{- end }}
{{- include (printf "portico.args.%s" .component) $root }}
{{- with $root.Values.tracing.endpoint }}
- --otlp-endpoint={{ . }}
{{- if $root.Values.tracing.secret }}
- --otlp-ca-file=/tracing/ca.crt
{{- end }}
{{- end }}
{{- end -}}

{{/* How a client reaches etcd and the etcds of single resources. */}}
{{- define "portico.args.etcd" }}
{{- $own := and (not .Values.etcd.bundled) .Values.etcd.external.secret }}
- --etcd-servers={{ include "portico.etcdServers" . }}
{{- range $resource, $servers := .Values.etcd.overrides }}
- --etcd-servers-overrides={{ $resource }}#{{ join ";" $servers }}
{{- end }}
- --etcd-cafile={{ ternary "/etcd/ca.crt" "/pki/etcd-ca.crt" (not (empty $own)) }}
- --etcd-certfile={{ ternary "/etcd/tls.crt" "/pki/etcd.crt" (not (empty $own)) }}
- --etcd-keyfile={{ ternary "/etcd/tls.key" "/pki/etcd.key" (not (empty $own)) }}
{{- end -}}

{{- define "portico.args.store" }}{{ end -}}
{{- define "portico.args.watch-hub" }}{{ end -}}
{{- define "portico.args.authz" }}{{ end -}}

{{- define "portico.args.admission" }}
{{- if or .Values.admissionConfiguration.plugins .Values.admissionConfiguration.secret }}
- --admission-control-config-file=/configuration/admission.yaml
{{- end }}
{{- end -}}

{{- define "portico.args.authn" }}
- --service-account-key-file=/pki/service-account.pub
- --enable-bootstrap-token-auth
{{- include "portico.args.clientTrust" . }}
{{- end -}}

{{/* How users and proxies are authenticated: authn does it, front doors publish it. */}}
{{- define "portico.args.clientTrust" }}
- --client-ca-file=/pki/users-ca.crt
- --requestheader-client-ca-file=/pki/front-proxy-ca.crt
- --requestheader-allowed-names=front-proxy-client
- --requestheader-username-headers=X-Remote-User
- --requestheader-group-headers=X-Remote-Group
- --requestheader-extra-headers-prefix=X-Remote-Extra-
{{- end -}}

{{- define "portico.args.frontdoor" }}
{{- $name := include "portico.fullname" . }}
{{- $targets := list }}
{{- range $component, $service := include "portico.suite" . | fromYaml }}
{{- $targets = append $targets (printf "%s=%s-%s-status:8080" $component $name $component) }}
{{- end }}
- --bind-address=0.0.0.0
- --status-targets={{ join "," $targets }}
- --advertise-address=$(POD_IP)
- --secure-port=6443
- --shutdown-delay-duration={{ .Values.frontdoor.shutdownDelay }}
- --service-cluster-ip-range={{ .Values.frontdoor.serviceClusterIPRange }}
- --tls-cert-file=/pki/serving.crt
- --tls-private-key-file=/pki/serving.key
- --service-account-key-file=/pki/service-account.pub
- --service-account-signing-key-file=/pki/service-account.key
- --proxy-client-cert-file=/pki/proxy-client.crt
- --proxy-client-key-file=/pki/proxy-client.key
{{- include "portico.args.clientTrust" . }}
{{- if .Values.tracing.endpoint }}
- --trace-sampling={{ .Values.tracing.sampling }}
{{- end }}
{{- with .Values.nodes }}
{{- if .enabled }}
- --kubelet-client-certificate=/pki/kubelet.crt
- --kubelet-client-key=/pki/kubelet.key
{{- if .verify }}
- --kubelet-certificate-authority={{ ternary "/nodes/ca.crt" "/pki/kubelet-ca.crt" (not (empty .secret)) }}
{{- end }}
{{- with .addressTypes }}
- --kubelet-preferred-address-types={{ join "," . }}
{{- end }}
{{- end }}
{{- with .allowCIDRs }}
- --connect-allow-cidrs={{ join "," . }}
{{- end }}
{{- with .denyCIDRs }}
- --connect-deny-cidrs={{ join "," . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "portico.args.csr-signer" }}
- --cluster-signing-cert-file=/pki/signing-ca.crt
- --cluster-signing-key-file=/pki/signing-ca.key
{{- with .Values.revocationStatus }}
{{- if .enabled }}
- --revocation-status-address=:8081
- --revocation-status-validity={{ .validity }}
{{- with .url }}
- --revocation-status-url={{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "portico.args.token-cleaner" }}
- --controllers=*,tokencleaner,bootstrapsigner
{{- end -}}

{{- define "portico.args.lifecycle" }}
- --service-account-key-file=/pki/service-account.key
{{- end -}}
