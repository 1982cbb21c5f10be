{{/*
brokerSpec, Services and brokerProperties of a Configuration, by the names and defaults of Akri's
chart. Arguments: the root, the key of the handler, the values of its configuration.
*/}}
{{- define "moorage.brokerFields" -}}
{{- $root := index . 0 }}{{ $key := index . 1 }}{{ $found := index . 2 -}}
{{- $defaults := include "moorage.brokerDefaults" $key | fromYaml -}}
{{- $pod := mergeOverwrite (deepCopy $defaults.brokerPod) ($found.brokerPod | default dict) -}}
{{- $job := mergeOverwrite (deepCopy $defaults.brokerJob) ($found.brokerJob | default dict) -}}
{{- if $pod.image.repository }}
brokerSpec:
  brokerPodSpec:
    {{- include "moorage.brokerPod" (list $root $found $pod) | nindent 4 }}
{{- else if $job.image.repository }}
brokerSpec:
  brokerJobSpec:
    template:
      spec:
        {{- include "moorage.brokerPod" (list $root $found $job) | nindent 8 }}
        restartPolicy: {{ $job.restartPolicy }}
    backoffLimit: {{ $job.backoffLimit }}
    parallelism: {{ $job.parallelism }}
    completions: {{ $job.completions }}
{{- end }}
{{- if $pod.image.repository }}
{{- range $name, $create := dict "instanceService" "createInstanceServices" "configurationService" "createConfigurationService" }}
{{- $service := mergeOverwrite (deepCopy $defaults.service) (index $found $name | default dict) }}
{{- if or (not (hasKey $found $create)) (index $found $create) }}
{{ $name }}Spec:
  type: {{ $service.type }}
  ports:
    - port: {{ $service.port }}
      targetPort: {{ $service.targetPort }}
      protocol: {{ $service.protocol }}
      {{- with $service.portName }}
      name: {{ . }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with $found.brokerProperties }}
brokerProperties:
  {{- range $name, $value := . }}
  {{ $name }}: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A PodSpec. Arguments: the root, the values of the configuration, those of the broker. */}}
{{- define "moorage.brokerPod" -}}
{{- $root := index . 0 }}{{ $found := index . 1 }}{{ $broker := index . 2 -}}
{{- $slot := dict "{{PLACEHOLDER}}" "1" -}}
{{- $own := $broker.resources -}}
{{- $requests := merge (dict "memory" $own.memoryRequest "cpu" $own.cpuRequest) $slot -}}
{{- $limits := merge (dict "memory" $own.memoryLimit "cpu" $own.cpuLimit) $slot -}}
{{- $certificates := and $found.mountCertificates (hasKey $found "mountCertificates") -}}
{{- $volumes := $broker.volumes | default list -}}
{{- $mounts := $broker.volumeMounts | default list -}}
{{- if $certificates -}}
{{- $volumes = append $volumes (include "moorage.brokerCertificates" . | fromYaml) -}}
{{- $mounts = append $mounts (dict "name" "credentials" "mountPath" "/etc/opcua-certs/client-pki" "readOnly" false) -}}
{{- end -}}
containers:
  - name: {{ $found.name }}-broker
    image: {{ printf "%s:%s" $broker.image.repository ($broker.image.tag | default "latest") | quote }}
    {{- with $broker.image.pullPolicy }}
    imagePullPolicy: {{ . }}
    {{- end }}
    {{- with $broker.command }}
    command: {{ toYaml . | nindent 6 }}
    {{- end }}
    {{- with $broker.env }}
    env:
      {{- range $name, $value := . }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
    {{- end }}
    {{- with $broker.envFrom }}
    envFrom:
      {{- range .secretRef }}
      - secretRef: {name: {{ . }}}
      {{- end }}
      {{- range .configMapRef }}
      - configMapRef: {name: {{ . }}}
      {{- end }}
    {{- end }}
    {{- with $broker.securityContext }}
    securityContext: {{ toYaml . | nindent 6 }}
    {{- end }}
    resources: {{ dict "requests" $requests "limits" $limits | toYaml | nindent 6 }}
    {{- with $mounts }}
    volumeMounts: {{ toYaml . | nindent 6 }}
    {{- end }}
{{- with $volumes }}
volumes: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The volume of Akri's opcua.configuration.mountCertificates: its Secret, and files of OPC UA. */}}
{{- define "moorage.brokerCertificates" -}}
name: credentials
secret:
  secretName: opcua-broker-credentials
  items:
    - {key: client_certificate, path: own/certs/AkriBroker.der}
    - {key: client_key, path: own/private/AkriBroker.pfx}
    - {key: ca_certificate, path: trusted/certs/SomeCA.der}
    - {key: ca_crl, path: trusted/crl/SomeCA.crl}
{{- end }}

{{/* What Akri's chart has for a handler where nothing is set. */}}
{{- define "moorage.brokerDefaults" -}}
{{- $resources := dict
  "udev" (list "10Mi" "10m" "30Mi" "29m")
  "debugEcho" (list "10Mi" "10m" "30Mi" "29m")
  "onvif" (list "98Mi" "134m" "400Mi" "2800m")
  "opcua" (list "76Mi" "9m" "200Mi" "30m")
  "custom" (list "11Mi" "10m" "24Mi" "24m") -}}
{{- $own := index $resources . -}}
{{- $same := dict "memoryRequest" (index $own 0) "cpuRequest" (index $own 1) "memoryLimit" (index $own 2) "cpuLimit" (index $own 3) -}}
{{- $service := dict "type" "ClusterIP" "protocol" "TCP" "port" 80 "targetPort" 8083 -}}
{{- if has . (list "debugEcho" "custom") -}}
{{- $service = dict "type" "ClusterIP" "protocol" "TCP" "port" 6052 "targetPort" 6052 -}}
{{- else if ne . "opcua" -}}
{{- $_ := set $service "portName" "grpc" -}}
{{- end -}}
{{- $pod := dict "image" dict "resources" $same -}}
{{- if eq . "udev" -}}
{{- $_ := set $pod "securityContext" (dict "privileged" true) -}}
{{- end -}}
{{- $job := dict "image" dict "resources" $same "restartPolicy" "OnFailure" "backoffLimit" 2 "parallelism" 1 "completions" 1 -}}
{{- dict "brokerPod" $pod "brokerJob" $job "service" $service | toYaml -}}
{{- end }}
