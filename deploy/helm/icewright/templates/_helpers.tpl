{{- define "icewright.labels" -}}
app.kubernetes.io/name: icewright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "icewright.selector" -}}
app.kubernetes.io/name: icewright
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "icewright.host" -}}
{{ trimPrefix "https://" .Values.publicUrl }}
{{- end }}

{{- define "icewright.name" -}}
{{ regexReplaceAll ":[0-9]+$" (include "icewright.host" .) "" }}
{{- end }}

{{- define "icewright.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ .Release.Name }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "icewright.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  privileged: false
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "icewright.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ if .root.Values.server.tls.secretName }}HTTPS{{ else }}HTTP{{ end }}
  httpHeaders:
    - {name: Host, value: {{ include "icewright.host" .root | quote }}}
{{- end }}

{{- define "icewright.checksum" -}}
checksum/config: {{ .Values.config | sha256sum }}
{{- end }}
