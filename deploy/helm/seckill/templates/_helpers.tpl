{{- define "seckill.labels" -}}
app.kubernetes.io/name: seckill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "seckill.image" -}}
{{ required "image.repository is empty: name the repository of your release, such as registry.example.com/seckill" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The most processes at a time: all replicas, and one of each role more during an upgrade. */}}
{{- define "seckill.processes" -}}
{{- $processes := len .Values.roles }}
{{- range $role, $r := .Values.roles }}
{{- $processes = add $processes (ternary (dig "maxReplicas" $r.replicas $r.autoscaling) $r.replicas $r.autoscaling.enabled) }}
{{- end }}
{{- $processes }}
{{- end }}

{{/* DATABASE_POOL: 3 connections of the server are for superusers, 5 for commands, 2 of each process for staff. */}}
{{- define "seckill.pool" -}}
{{- $most := int .Values.postgres.maxConnections }}
{{- $processes := int (include "seckill.processes" .) }}
{{- $fits := sub (div (sub $most 8) $processes) 2 }}
{{- $pool := int (default (max 4 (min 16 $fits)) .Values.settings.DATABASE_POOL) }}
{{- if gt $pool (int $fits) }}
{{- fail (printf "postgres.maxConnections is %d: %d processes with DATABASE_POOL %d need %d. Raise max_connections of Postgres and this value, lower replicas or maxReplicas, or put a pooler between" $most $processes $pool (add 8 (mul $processes (add 2 $pool)))) }}
{{- end }}
{{- $pool }}
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
- name: SECKILL_DATABASE_POOL
  value: {{ include "seckill.pool" . | quote }}
{{- range $name, $value := omit .Values.settings "DATABASE_POOL" }}
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
