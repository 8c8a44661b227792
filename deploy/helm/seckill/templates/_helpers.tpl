{{- define "seckill.labels" -}}
app.kubernetes.io/name: seckill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "seckill.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Settings of every container: secrets by reference, the rest from values. */}}
{{- define "seckill.env" -}}
{{- range $name, $key := dict "DATABASE_URL" "database-url" "REDIS_URL" "redis-url" "JWT_KEY" "jwt-key" }}
- name: SECKILL_{{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $.Values.existingSecret }}, key: {{ $key }}}
{{- end }}
- name: SECKILL_ADMIN_ADDR
  value: ":9090"
{{- if and .Values.ingress.enabled (not (hasKey .Values.settings "PUBLIC_URL")) }}
- name: SECKILL_PUBLIC_URL
  value: {{ printf "https://%s" .Values.ingress.host | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: SECKILL_{{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "seckill.container" -}}
image: {{ include "seckill.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.volumeMounts }}
volumeMounts: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "seckill.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.volumes }}
volumes: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
