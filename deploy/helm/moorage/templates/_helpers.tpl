{{/* Where what needs folders of the host runs: apart from the webhook's key and the scheduler's token, if a name is given. */}}
{{- define "moorage.driverNamespace" -}}
{{- .Values.driver.namespace | default .Release.Namespace -}}
{{- end }}

{{/* Namespaces whose pods never wait for the webhook. */}}
{{- define "moorage.ownNamespaces" -}}
{{- list "kube-system" .Release.Namespace (include "moorage.driverNamespace" .) | uniq | join ", " -}}
{{- end }}

{{/* An image as a pod names it, of the root and one of the values `image`. */}}
{{- define "moorage.image" -}}
{{- $image := index . 1 -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* kube-scheduler's: without a tag, that of the API server's version, whatever a provider adds to it. */}}
{{- define "moorage.schedulerImage" -}}
{{- $version := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{- include "moorage.image" (list . (merge (dict "tag" (.Values.scheduler.image.tag | default $version)) .Values.scheduler.image)) -}}
{{- end }}

{{/* Of a pod's spec: how its images are pulled. */}}
{{- define "moorage.pull" -}}
{{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end }}

{{/* Of a pod's spec, from the values of one workload. */}}
{{- define "moorage.placement" -}}
{{- with .nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- with .affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end }}

{{- define "moorage.tolerations" -}}
{{- with .tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
{{- end }}
{{- end }}

{{/* A list of strings in the language of policies. */}}
{{- define "moorage.cel.list" -}}
[{{ range $i, $one := . }}{{ if $i }}, {{ end }}'{{ $one }}'{{ end }}]
{{- end }}

{{- define "moorage.schedulerGates" -}}
{{- $found := list -}}
{{- range $name, $on := .Values.scheduler.featureGates }}{{ $found = append $found (printf "%s=%t" $name $on) }}{{ end -}}
{{- with $found }}, "--feature-gates={{ join "," . }}"{{ end -}}
{{- end }}

{{/* Kinds of PodGroups are given as plural.version.group, or as plural.group. */}}
{{- define "moorage.podGroups.groups" -}}
{{- $found := list -}}
{{- range .Values.accounting.podGroups }}{{ $found = append $found (regexReplaceAll "^[^.]+\\.(v[0-9]+((alpha|beta)[0-9]+)?\\.)?" . "") }}{{ end -}}
{{- $found | uniq | join ", " -}}
{{- end }}

{{- define "moorage.podGroups.plurals" -}}
{{- $found := list -}}
{{- range .Values.accounting.podGroups }}{{ $found = append $found (splitList "." . | first) }}{{ end -}}
{{- $found | uniq | join ", " -}}
{{- end }}

{{/* What the programs are told. A flag that would say what the program does anyway is not given. */}}
{{- define "moorage.flags" -}}
{{- range . }}
            - {{ . | quote }}
{{- end }}
{{- end }}

{{- define "moorage.embeddedHandlers" -}}
{{- $found := list -}}
{{- range $name := list "udev" "debugEcho" }}
{{- if (index $.Values $name).discovery.enabled }}{{ $found = append $found $name }}{{ end }}
{{- end -}}
{{- $found | join "," -}}
{{- end }}

{{/* How a component logs: of the root and the values of the component. */}}
{{- define "moorage.logFlagList" -}}
{{- $found := list -}}
{{- with (index . 1).logLevel }}{{ if ne . "INFO" }}{{ $found = append $found (printf "--log-level=%s" .) }}{{ end }}{{ end -}}
{{- with (index . 0).Values.logFormat }}{{ if ne . "text" }}{{ $found = append $found (printf "--log-format=%s" .) }}{{ end }}{{ end -}}
{{- $found | toJson -}}
{{- end }}

{{- define "moorage.tracingFlagList" -}}
{{- $found := list -}}
{{- with .Values.tracing }}{{ with .endpoint }}{{ $found = append $found (printf "--tracing-endpoint=%s" .) }}{{ end }}{{ end -}}
{{- $found | toJson -}}
{{- end }}

{{- define "moorage.driverFlagList" -}}
{{- $found := list -}}
{{- with .Values.driver -}}
{{- if ne .path "auto" }}{{ $found = append $found (printf "--path=%s" .path) }}{{ end -}}
{{- if not .uniqueDevices }}{{ $found = append $found "--unique-devices-default=false" }}{{ end -}}
{{- end -}}
{{- $found = concat $found (include "moorage.logFlagList" (list . .Values.driver) | fromJsonArray) -}}
{{- $found | toJson -}}
{{- end }}

{{- define "moorage.driverFlags" -}}
{{- include "moorage.flags" (include "moorage.driverFlagList" . | fromJsonArray) -}}
{{- end }}

{{- define "moorage.nodeFlags" -}}
{{- $found := list -}}
{{- with .Values.driver.node -}}
{{- with .instanceHashDigits }}{{ if ne (int .) 6 }}{{ $found = append $found (printf "--instance-hash-digits=%d" (int .)) }}{{ end }}{{ end -}}
{{- with .environment -}}
{{- with .denied }}{{ $found = append $found (printf "--denied-environment=%s" (join "," .)) }}{{ end -}}
{{- with .allowed }}{{ $found = append $found (printf "--allowed-environment=%s" (join "," .)) }}{{ end -}}
{{- $prefixes := join "," .networkPrefixes -}}
{{- if ne $prefixes "ONVIF_,OPCUA_" }}{{ $found = append $found (printf "--network-handler-prefixes=%s" $prefixes) }}{{ end -}}
{{- end -}}
{{- if ne (int .metricsPort) 8090 }}{{ $found = append $found (printf "--metrics-address=:%d" (int .metricsPort)) }}{{ end -}}
{{- if ne .host.kubelet "/var/lib/kubelet" }}{{ $found = append $found (printf "--kubelet-root=%s" .host.kubelet) }}{{ end -}}
{{- if ne .host.cdi "/var/run/cdi" }}{{ $found = append $found (printf "--cdi-root=%s" .host.cdi) }}{{ end -}}
{{- if ne .host.discoveryHandlers "/var/lib/akri" }}{{ $found = append $found (printf "--handler-registration-socket=%s/agent-registration.sock" .host.discoveryHandlers) }}{{ end -}}
{{- range .extraArgs }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- $found = concat $found (include "moorage.tracingFlagList" . | fromJsonArray) -}}
{{- include "moorage.flags" $found -}}
{{- end }}

{{- define "moorage.sharedFlags" -}}
{{- $found := include "moorage.driverFlagList" . | fromJsonArray -}}
{{- with .Values.driver.shared -}}
{{- if ne .lostNodeGrace "5m" }}{{ $found = append $found (printf "--lost-node-grace=%s" .lostNodeGrace) }}{{ end -}}
{{- if .instanceClasses }}{{ $found = append $found "--instance-classes" }}{{ end -}}
{{- if .groupByNodes }}{{ $found = append $found "--group-by-nodes" }}{{ end -}}
{{- end -}}
{{- with .Values.brokers -}}
{{- with .namespaces }}{{ $found = append $found (printf "'--broker-namespaces=%s'" (join "," .)) }}{{ end -}}
{{- if ne .serviceAccount "moorage-brokers" }}{{ $found = append $found (printf "--broker-account=%s" .serviceAccount) }}{{ end -}}
{{- end -}}
{{- range $found }}, {{ . }}{{ end -}}
{{- end }}

{{- define "moorage.handlerFlags" -}}
{{- $found := list -}}
{{- with .Values.driver.networkHandlers -}}
{{- with .discoveryNetworks }}{{ $found = append $found (printf "--discovery-networks=%s" (join "," .)) }}{{ end -}}
{{- with .serviceNetworks }}{{ $found = append $found (printf "--service-networks=%s" (join "," .)) }}{{ end -}}
{{- end -}}
{{- $found = concat $found (include "moorage.logFlagList" (list . .Values.driver) | fromJsonArray) -}}
{{- include "moorage.flags" $found -}}
{{- end }}

{{/* Whether the scheduler is the release's own. */}}
{{- define "moorage.dedicated" -}}
{{- if eq .Values.scheduler.mode "Dedicated" }}yes{{ end -}}
{{- end }}

{{/* Namespace and name of kube-scheduler's Lease. */}}
{{- define "moorage.leaseNamespace" -}}
{{- if include "moorage.dedicated" . }}{{ .Release.Namespace }}{{ else }}kube-system{{ end -}}
{{- end }}

{{- define "moorage.leaseName" -}}
{{- if include "moorage.dedicated" . }}moorage-scheduler{{ else }}kube-scheduler{{ end -}}
{{- end }}

{{/* Whether others than the pod itself read the plugin's pages. */}}
{{- define "moorage.pagesOpen" -}}
{{- if and (include "moorage.dedicated" .) .Values.prometheus.enabled }}yes{{ end -}}
{{- end }}

{{/* What decides who is charged: of the plugin, and of the dashboard, which shows it. */}}
{{- define "moorage.accountingFlagList" -}}
{{- $found := list -}}
{{- if ne .Values.scheduler.name "moorage" }}{{ $found = append $found (printf "--scheduler-name=%s" .Values.scheduler.name) }}{{ end -}}
{{- with .Values.accounting -}}
{{- if ne .queueLabel "moorage.dev/queue" }}{{ $found = append $found (printf "--queue-label=%s" .queueLabel) }}{{ end -}}
{{- with .defaultQueue }}{{ $found = append $found (printf "--default-queue=%s" .) }}{{ end -}}
{{- if ne (int .nonPreemptiblePriority) 100 }}{{ $found = append $found (printf "--non-preemptible-priority=%d" (int .nonPreemptiblePriority)) }}{{ end -}}
{{- if ne .orphanPolicy "OldestPod" }}{{ $found = append $found (printf "--orphan-policy=%s" .orphanPolicy) }}{{ end -}}
{{- if ne .ownerLifetime "Allocation" }}{{ $found = append $found (printf "--owner-lifetime=%s" .ownerLifetime) }}{{ end -}}
{{- $groups := join "," .podGroups -}}
{{- if ne $groups "podgroups.v2alpha2.scheduling.run.ai,podgroups.v1alpha1.scheduling.x-k8s.io,podgroups.scheduling.k8s.io" }}{{ $found = append $found (printf "--pod-groups=%s" $groups) }}{{ end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}

{{/* The Secret that the plugin and the dashboard share. */}}
{{- define "moorage.dashboardSecretFlagList" -}}
{{- $found := list -}}
{{- if ne .Release.Namespace "moorage-system" }}{{ $found = append $found (printf "--dashboard-tls-secret=%s/moorage-dashboard-tls" .Release.Namespace) }}{{ end -}}
{{- $found | toJson -}}
{{- end }}

{{- define "moorage.dashboardFlags" -}}
{{- $found := list -}}
{{- $lease := printf "%s/%s" (include "moorage.leaseNamespace" .) (include "moorage.leaseName" .) -}}
{{- if ne $lease "moorage-system/moorage-scheduler" }}{{ $found = append $found (printf "--lease=%s" $lease) }}{{ end -}}
{{- $found = concat $found (include "moorage.accountingFlagList" . | fromJsonArray) -}}
{{- $found = concat $found (include "moorage.dashboardSecretFlagList" . | fromJsonArray) -}}
{{- $found = concat $found (include "moorage.logFlagList" (list . .Values.dashboard) | fromJsonArray) -}}
{{- range $found }}, {{ . | quote }}{{ end -}}
{{- end }}

{{- define "moorage.pluginFlags" -}}
{{- $found := list -}}
{{- if ne .Release.Namespace "moorage-system" }}{{ $found = append $found (printf "--lease=%s/moorage-scheduler" .Release.Namespace) }}{{ end -}}
{{- $found = concat $found (include "moorage.accountingFlagList" . | fromJsonArray) -}}
{{- with .Values.accounting -}}
{{- $drivers := join "," .drivers }}{{ if ne $drivers "moorage.dev" }}{{ $found = append $found (printf "--accounted-drivers=%s" $drivers) }}{{ end -}}
{{- if ne .reclaim "Quota" }}{{ $found = append $found (printf "--reclaim=%s" .reclaim) }}{{ end -}}
{{- if ne (int .evictionsPerMinute) 600 }}{{ $found = append $found (printf "--evictions-per-minute=%d" (int .evictionsPerMinute)) }}{{ end -}}
{{- with .staleGangGrace | toString }}{{ if not (has . (list "60" "<nil>")) }}{{ $found = append $found (printf "--stale-gang-grace=%s" .) }}{{ end }}{{ end -}}
{{- end -}}
{{- $found = concat $found (include "moorage.logFlagList" (list . .Values.scheduler.plugin) | fromJsonArray) -}}
{{- $found = concat $found (include "moorage.tracingFlagList" . | fromJsonArray) -}}
{{- if include "moorage.pagesOpen" . }}{{ $found = append $found "--pages-address=:10262" }}{{ end -}}
{{- if .Values.dashboard.enabled }}
{{- $found = append $found "--dashboard-address=:10265" }}
{{- $found = concat $found (include "moorage.dashboardSecretFlagList" . | fromJsonArray) -}}
{{- end -}}
{{- range $found }}, {{ . | quote }}{{ end -}}
{{- end }}

{{- define "moorage.webhookFlags" -}}
{{- $found := list -}}
{{- if ne .Values.webhook.hold "Gate" }}{{ $found = append $found (printf "--hold=%s" .Values.webhook.hold) }}{{ end -}}
{{- if ne .Values.accounting.otherSchedulers "Refuse" }}{{ $found = append $found (printf "--other-schedulers=%s" .Values.accounting.otherSchedulers) }}{{ end -}}
{{- $found = concat $found (include "moorage.logFlagList" (list . .Values.webhook) | fromJsonArray) -}}
{{- $drivers := join "," .Values.accounting.drivers }}{{ if ne $drivers "moorage.dev" }}{{ $found = append $found (printf "--accounted-drivers=%s" $drivers) }}{{ end -}}
{{- with .Values.webhook.certificates -}}
{{- if eq .source "CertManager" }}{{ $found = append $found "--tls-cert-file=/etc/moorage/certificate/tls.crt" }}{{ $found = append $found "--tls-private-key-file=/etc/moorage/certificate/tls.key" }}
{{- else if ne (int .days) 90 }}{{ $found = append $found (printf "--certificate-days=%d" (int .days)) }}{{ end -}}
{{- end -}}
{{- if and (include "moorage.ownCA" .) (ne .Release.Namespace "moorage-system") }}{{ $found = append $found (printf "--tls-secret=%s/moorage-webhook-tls" .Release.Namespace) }}{{ end -}}
{{- include "moorage.flags" $found -}}
{{- end }}

{{/* Whether the webhook signs its own certificate, and so writes a Secret and its registrations. */}}
{{- define "moorage.ownCA" -}}
{{- if and .Values.webhook.enabled (eq .Values.webhook.certificates.source "OwnCA") }}true{{ end -}}
{{- end }}

{{- define "moorage.webhookCertificateMounts" -}}
{{- if eq .Values.webhook.certificates.source "CertManager" }}
          volumeMounts:
            - name: certificate
              mountPath: /etc/moorage/certificate
              readOnly: true
      volumes:
        - name: certificate
          secret:
            secretName: moorage-webhook-certificate
            defaultMode: 0440
      securityContext:
        fsGroup: 65534
{{- end }}
{{- end }}

{{- define "moorage.injectedAuthority" -}}
{{- if eq .Values.webhook.certificates.source "CertManager" }}
  annotations:
    cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/moorage-webhook
{{- end }}
{{- end }}

{{/* Of a kind that somebody else brings: say so before anything is made. */}}
{{- define "moorage.requireApi" -}}
{{- $root := index . 0 -}}
{{- if not ($root.Capabilities.APIVersions.Has (index . 1)) }}
{{- fail (printf "%s: the cluster does not serve %s: %s" (index . 2) (index . 1) (index . 3)) }}
{{- end }}
{{- end }}
